"""Qwen2.5-VL: pictures and clips as flat patches, three-way rotary positions, ChatML turns."""

from __future__ import annotations

from functools import partial

from lading.family import Family, Medium, MRope, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.geometry import ClipGrid, PatchGrid
from lading.media.pixels import patch_tensors
from lading.media.raw import RawPatches

FAMILY = Family(
    name="qwen2_5_vl",
    title="Qwen2.5-VL",
    processors=("Qwen2_5_VLProcessor",),
    models=("Qwen2_5_VLForConditionalGeneration",),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "image": Medium(mark="<|image_pad|>", pad="<|image_pad|>", geometry=PatchGrid.read),
        # Two frames a second is what the model was published with; transformers alone would use every frame.
        "video": Medium(mark="<|video_pad|>", pad="<|video_pad|>", geometry=partial(ClipGrid.read, fps=2.0)),
    },
    fields={
        "pixel_values": Field(axis="image_patch", counted_by=("image_grid_thw",)),
        "image_grid_thw": Field(axis="image"),
        "pixel_values_videos": Field(axis="video_patch", counted_by=("video_grid_thw",)),
        "video_grid_thw": Field(axis="video"),
        "second_per_grid_ts": Field(axis="video"),
    },
    tensors=patch_tensors,
    raw=RawPatches.read,
    # Without it the model falls back to plain positions where it is given none, and says nothing.
    token_types="mm_token_type_ids",
    positions=MRope(merge=lambda processor: int(processor.image_processor.merge_size), tokens_per_second=2.0),
    # 7B.
    work=work(
        Tower(hidden=3584, layers=28, feed_forward=18944, keys=512, vocabulary=152064),
        Tower(hidden=1280, layers=32, feed_forward=3420, window=64, full_layers=4),
    ),
)
