"""InternVL: pictures as tiles of one size, a thumbnail last; every tile is as many tokens."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, TurnStyle
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import image_probe

FAMILY = Family(
    name="internvl",
    title="InternVL 3",
    processors=("InternVLProcessor",),
    models=("InternVLForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "image": Medium(
            mark="<IMG_CONTEXT>",
            pad="<IMG_CONTEXT>",
            geometry=partial(image_probe, pad="<IMG_CONTEXT>", rows=lambda made: made["num_patches"]),
        ),
    },
    fields={"pixel_values": Field(axis="image_patch")},
    tensors=processor_tensors,
)
