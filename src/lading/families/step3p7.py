"""Step-3.7: a view of the whole picture and, for large ones, crops in front of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.family import Family, LayerSight, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import image_facts
from lading.private_names import crop_planning
from lading.records import ImageSize


def _crops(numbers: Any, options: Mapping[str, Any], sizes: Sequence[ImageSize]) -> tuple[dict[str, Any], list[int]]:
    """Rows and columns of crops, as the image processor plans them; a new line behind each row but the last."""
    side = options.get("size", numbers.size)["height"]
    patch = options.get("patch_size", numbers.patch_size)
    lines, counts, plan = [], [], crop_planning(numbers)
    for size in sizes:
        whole, cropped, _, wide, high, _ = plan(size.width, size.height, side, patch)
        if not min(*whole, *cropped):
            raise ValueError(f"nothing is left of {size.height}x{size.width}")
        lines.append([column == wide - 1 and row < high - 1 for row in range(high) for column in range(wide)])
        counts.append(wide * high)
    return {"num_local_patches": counts, "patch_newline_masks": lines}, counts


FAMILY = Family(
    name="step3p7",
    title="Step-3.7",
    processors=("Step3p7Processor",),
    models=("Step3p7ForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "image": Medium(
            mark="<im_patch>",
            pad="<im_patch>",
            geometry=partial(image_facts, pad="<im_patch>", facts=_crops),
        ),
    },
    fields={
        "pixel_values": Field(axis="image"),
        "num_local_patches": Field(axis="image"),
        "pixel_values_local": Field(axis="image_patch", counted_by=("num_local_patches",)),
        # The same by the names of the processor that was published with Step-3.
        "patch_pixel_values": Field(axis="image_patch", counted_by=("num_patches",)),
        "num_patches": Field(axis="image"),
        "patch_newline_mask": Field(axis="image_patch", counted_by=("num_patches",)),
    },
    tensors=processor_tensors,
    layers=lambda config: {
        "full_attention": LayerSight(),
        "sliding_attention": LayerSight(window=config.sliding_window),
    },
    # flash.
    work=work(
        Tower(hidden=4096, layers=45, feed_forward=11520, keys=1024, vocabulary=128896),
        Tower(hidden=1536, layers=47, feed_forward=8960, gated=False, tile=2704),
    ),
)
