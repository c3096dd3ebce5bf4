"""Gemma 3: pictures of one size, 256 tokens each, that see each other both ways."""

from __future__ import annotations

from functools import partial

from lading.family import Family, LayerSight, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import image_probe

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
            geometry=partial(
                image_probe,
                pad="<image_soft_token>",
                # Panned crops, where the processor is told to make them, follow the whole picture.
                rows=lambda made: [1 + int(crops) for crops in made["num_crops"]],
            ),
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
