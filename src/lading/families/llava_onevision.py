"""LLaVA-OneVision: a lone picture is tiled, several in one sample are not; tiles are stacked up to the widest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.geometry.pictures import best_resolution
from lading.media.pixels import processor_tensors
from lading.media.probe import clip_probe, image_facts
from lading.records import ImageSize


def _tiles(numbers: Any, options: Mapping[str, Any], sizes: Sequence[ImageSize]) -> tuple[dict[str, Any], list[int]]:
    """The whole and, of a lone picture, its tiles. Of the pixels, the processor only asks for their shape."""
    import torch

    size = options.get("size", numbers.size)
    side = size["height"] if "height" in size else size["shortest_edge"]
    tile = (options.get("crop_size", numbers.crop_size) or {"height": side})["height"]
    rows = [1] * len(sizes)
    if len(sizes) == 1:
        choices = options.get("image_grid_pinpoints", numbers.image_grid_pinpoints)
        height, width = best_resolution(sizes[0].height, sizes[0].width, choices)
        rows = [1 + -(-height // tile) * -(-width // tile)]
    made = {
        "pixel_values": torch.empty(1, 1, 3, side, side, device="meta"),
        "image_sizes": [(size.height, size.width) for size in sizes],
        "batch_num_images": [len(sizes)],
    }
    return made, rows


FAMILY = Family(
    name="llava_onevision",
    title="LLaVA-OneVision",
    processors=("LlavaOnevisionProcessor",),
    models=("LlavaOnevisionForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "video": Medium(
            mark="<video>",
            pad="<video>",
            geometry=partial(
                clip_probe, pad="<video>", rows=lambda made: [1] * len(made["pixel_values_videos"]), count=8
            ),
        ),
        "image": Medium(
            mark="<image>",
            pad="<image>",
            geometry=partial(image_facts, pad="<image>", facts=_tiles),
        ),
    },
    fields={
        # Clips of one batch have equally many frames.
        "pixel_values_videos": Field(axis="video"),
        "image_sizes_videos": Field(axis="video"),
        "pixel_values": Field(axis="image", stretch=1),
        "image_sizes": Field(axis="image"),
        "batch_num_images": Field(axis="image_group"),
    },
    tensors=processor_tensors,
    # 7B.
    work=work(
        Tower(hidden=3584, layers=28, feed_forward=18944, keys=512, vocabulary=152064),
        Tower(hidden=1152, layers=26, feed_forward=4304, gated=False, tile=729),
    ),
)
