"""Kimi K2.5: pictures and clips as flat patches, an empty thought in front of every answer."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import clip_probe, image_count

FAMILY = Family(
    name="kimi_k25",
    title="Kimi K2.5",
    processors=("Kimi_K25Processor", "KimiK25Processor"),
    models=("Kimi_K25ForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_{role}|>{role}<|im_middle|>", closing="<|im_end|>", unsaid=("<think></think>",)),
    media={
        # (transformers 5.22 has the model split a clip's features by its unpooled size, so that it refuses any clip,
        # packed or not.)
        "video": Medium(
            mark="<|kimi_k25_video_placeholder|>",
            pad="<|kimi_k25_video_placeholder|>",
            geometry=partial(
                clip_probe,
                pad="<|kimi_k25_video_placeholder|>",
                rows=lambda made: [int(made["video_grid_thw"].prod(-1).sum())],
                fps=2.0,
            ),
        ),
        "image": Medium(
            mark="<|media_pad|>",
            pad="<|media_pad|>",
            geometry=partial(image_count, pad="<|media_pad|>"),
        ),
    },
    fields={
        "pixel_values": Field(axis="image_patch", counted_by=("image_grid_thw", "grid_thws")),
        "image_grid_thw": Field(axis="image"),
        "pixel_values_videos": Field(axis="video_patch", counted_by=("video_grid_thw",)),
        # One grid for every few frames, each behind its time.
        "video_grid_thw": Field(axis="video_run"),
        # The published processor's own name for the grids.
        "grid_thws": Field(axis="image"),
    },
    tensors=processor_tensors,
    # 1T-A32B.
    work=work(
        Tower(hidden=7168, layers=61, feed_forward=18432, vocabulary=163840),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False),
    ),
)
