"""InternVL: pictures as tiles of one size, a thumbnail last; clips as frames; every tile is as many tokens."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import clip_probe, image_count

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
            geometry=partial(image_count, pad="<IMG_CONTEXT>", frame="<img>{}</img>", beside=2),
        ),
        # Eight frames a clip is what the model was published with; its video processor names no number.
        "video": Medium(
            mark="<video>",
            pad="<IMG_CONTEXT>",
            geometry=partial(
                clip_probe,
                pad="<IMG_CONTEXT>",
                rows=lambda made: [len(frames) for frames in made["pixel_values_videos"]],
                count=8,
            ),
        ),
    },
    # Tiles of pictures and frames of clips, in reading order.
    fields={"pixel_values": Field(axis="visual_patch")},
    tensors=processor_tensors,
    # 8B.
    work=work(
        Tower(hidden=3584, layers=28, feed_forward=18944, keys=512, vocabulary=151674),
        Tower(hidden=1024, layers=24, feed_forward=4096, gated=False, tile=1025),
    ),
)
