"""Gemma 3: pictures of one size, 256 tokens each, that see each other both ways."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lading.family import Family, LayerSight, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.geometry.pictures import panned_crops
from lading.media.pixels import processor_tensors
from lading.media.probe import image_facts
from lading.records import ImageSize


def _crops(numbers: Any, options: Mapping[str, Any], sizes: Sequence[ImageSize]) -> tuple[dict[str, Any], list[int]]:
    """Panned crops, where the processor is told to make them, follow the whole picture."""
    crops = [0] * len(sizes)
    if options.get("do_pan_and_scan", numbers.do_pan_and_scan):
        least = options.get("pan_and_scan_min_crop_size", numbers.pan_and_scan_min_crop_size)
        most = options.get("pan_and_scan_max_num_crops", numbers.pan_and_scan_max_num_crops)
        ratio = options.get("pan_and_scan_min_ratio_to_activate", numbers.pan_and_scan_min_ratio_to_activate)
        crops = [panned_crops(size.height, size.width, least=least, most=most, ratio=ratio) for size in sizes]
    return {"num_crops": crops}, [1 + count for count in crops]


FAMILY = Family(
    name="gemma3",
    title="Gemma 3",
    processors=("Gemma3Processor",),
    models=("Gemma3ForConditionalGeneration",),
    turns=TurnStyle(
        opening="<start_of_turn>{role}\n",
        closing="<end_of_turn>",
        names={"assistant": "model"},
        system_in_first_turn=True,
    ),
    media={
        "image": Medium(
            mark="<start_of_image>",
            pad="<image_soft_token>",
            geometry=partial(image_facts, pad="<image_soft_token>", facts=_crops),
        ),
    },
    fields={"pixel_values": Field(axis="image_patch")},
    tensors=processor_tensors,
    layers=lambda config: {
        "full_attention": LayerSight(both_ways=True),
        "sliding_attention": LayerSight(window=config.sliding_window, both_ways=True),
    },
    token_types="token_type_ids",
    # 4B.
    work=work(
        Tower(hidden=2560, layers=34, feed_forward=10240, keys=1024, vocabulary=262208),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False, tile=4096),
    ),
)
