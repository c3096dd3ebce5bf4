"""LLaVA-OneVision: a lone picture is tiled, several in one sample are not; tiles are stacked up to the widest."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import clip_probe, image_probe

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
            geometry=partial(
                image_probe, pad="<image>", rows=lambda made: [len(tiles) for tiles in made["pixel_values"]]
            ),
        ),
    },
    fields={
        # Clips of one batch have equally many frames.
        "pixel_values_videos": Field(axis="video"),
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
