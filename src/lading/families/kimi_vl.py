"""Kimi-VL: like Kimi K2.5 without clips or thoughts, its grids two numbers a picture.

Its processor comes with the model as remote code: it writes no replacement texts, and its image processor gives
`image_grid_hws`. A picture is as many tokens as it has patches, over the merge kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import Answer, Probe
from lading.records import Footprint, ImageSize, MediaPart, Size

PAD = "<|media_pad|>"


def _pictures(processor: Any) -> Probe:
    numbers = processor.image_processor

    def ask(sizes: tuple[Size, ...]) -> Answer:
        from PIL import Image

        blanks = [Image.new("RGB", (size.width, size.height)) for size in sizes if isinstance(size, ImageSize)]
        grids = numbers(blanks, return_tensors="pt")["image_grid_hws"]
        rows = [int(height) * int(width) for height, width in grids]
        high, wide = _kernel(numbers)
        return [PAD * (count // (high * wide)) for count in rows], rows

    return Probe(kind="image", pad=PAD, ask=ask)


def _kernel(numbers: Any) -> tuple[int, int]:
    """Remote code names the kernel by both sides; transformers' own class by one."""
    sides = getattr(numbers, "merge_kernel_size", None)
    return (int(sides[0]), int(sides[1])) if sides is not None else (int(numbers.merge_size),) * 2


def _tensors(processor: Any, text: str, parts: Sequence[MediaPart], footprints: Sequence[Footprint]) -> dict[str, Any]:
    return processor_tensors(processor, text, parts, footprints, nested=False)


FAMILY = Family(
    name="kimi_vl",
    title="Kimi-VL",
    processors=("KimiVLProcessor",),
    models=("KimiVLForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_{role}|>{role}<|im_middle|>", closing="<|im_end|>"),
    media={"image": Medium(mark=PAD, pad=PAD, geometry=_pictures)},
    fields={
        "pixel_values": Field(axis="image_patch", counted_by=("image_grid_hws",)),
        "image_grid_hws": Field(axis="image"),
    },
    tensors=_tensors,
    # A3B.
    work=work(
        Tower(hidden=2048, layers=27, feed_forward=11264, vocabulary=163840),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False),
    ),
)
