"""Step-3.7: a view of the whole picture and, for large ones, crops in front of it."""

from __future__ import annotations

from functools import partial

from lading.family import Family, LayerSight, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import image_probe

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
            geometry=partial(image_probe, pad="<im_patch>", rows=lambda made: made["num_local_patches"]),
        ),
    },
    fields={
        "pixel_values": Field(axis="image"),
        "num_local_patches": Field(axis="image"),
        "pixel_values_local": Field(axis="image_patch"),
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
