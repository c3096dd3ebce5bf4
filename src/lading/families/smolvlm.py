"""SmolVLM and Idefics 3: a picture is rows and columns of tiles, each behind its own mark, and a view of the whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import image_facts
from lading.records import ImageSize


def _tiles(numbers: Any, options: Mapping[str, Any], sizes: Sequence[ImageSize]) -> tuple[dict[str, Any], list[int]]:
    """Rows × columns and the whole, for each picture of the one sample; the image processor reckons them itself."""
    found = [numbers.get_number_of_image_patches(size.height, size.width, dict(options)) for size in sizes]
    made = {"rows": [[rows for _, rows, _ in found]], "cols": [[columns for _, _, columns in found]]}
    return made, [rows * columns + 1 for _, rows, columns in found]


FAMILY = Family(
    name="smolvlm",
    title="SmolVLM / Idefics 3",
    processors=("Idefics3Processor", "SmolVLMProcessor"),
    models=("Idefics3ForConditionalGeneration", "SmolVLMForConditionalGeneration"),
    turns=TurnStyle(
        opening="{role}:",
        closing="<end_of_utterance>",
        names={"system": "System", "user": "User", "assistant": "Assistant", "tool": "Tool"},
    ),
    media={
        "image": Medium(mark="<image>", pad="<image>", geometry=partial(image_facts, pad="<image>", facts=_tiles)),
    },
    # The first axis is the batch's, and always 1 here: the model only counts tiles.
    fields={
        "pixel_values": Field(axis="image_patch", dim=1),
        "pixel_attention_mask": Field(axis="image_patch", dim=1),
    },
    tensors=processor_tensors,
    # 2.2B.
    work=work(
        Tower(hidden=2048, layers=24, feed_forward=8192, vocabulary=49280),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False, tile=729),
    ),
)
