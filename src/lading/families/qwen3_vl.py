"""Qwen3-VL: like Qwen2.5-VL, with a timestamp in front of every pair of frames."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, MRope, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.geometry import PatchGrid, StampedClipGrid
from lading.media.pixels import patch_tensors
from lading.media.raw import RawPatches

FAMILY = Family(
    name="qwen3_vl",
    title="Qwen3-VL",
    processors=("Qwen3VLProcessor",),
    models=("Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration"),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "image": Medium(mark="<|image_pad|>", pad="<|image_pad|>", geometry=PatchGrid.read),
        "video": Medium(
            mark="<|video_pad|>",
            pad="<|video_pad|>",
            geometry=partial(
                StampedClipGrid.read, stamp="<{seconds:.1f} seconds><|vision_start|><|video_pad|><|vision_end|>"
            ),
        ),
    },
    fields={
        "pixel_values": Field(axis="image_patch", counted_by=("image_grid_thw",)),
        "image_grid_thw": Field(axis="image"),
        "pixel_values_videos": Field(axis="video_patch", counted_by=("video_grid_thw",)),
        "video_grid_thw": Field(axis="video"),
    },
    tensors=partial(patch_tensors, seconds=None),
    raw=partial(RawPatches.read, seconds=None),
    # Every frame stands alone between its timestamps, so there is no time within a run of pads.
    positions=MRope(merge=lambda processor: int(processor.image_processor.merge_size), tokens_per_second=0.0),
    token_types="mm_token_type_ids",
    # 8B.
    work=work(
        Tower(hidden=4096, layers=36, feed_forward=12288, keys=1024, vocabulary=151936),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False),
    ),
)
