"""Qwen3-Omni (the thinker): pictures, clips, heard or not, and sounds; time in fractions of a position."""

from __future__ import annotations

from functools import partial
from typing import Any

from lading.family import Family, Medium, MRope, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.geometry import ClipGrid, MelWindows, PatchGrid, SoundingClips
from lading.media.pixels import patch_and_sound_tensors, sound_tensors
from lading.media.raw import RawPatches

# What `Qwen3OmniMoeProcessor` sets for clips, whatever its video processor says.
CLIP_PIXELS = {"shortest_edge": 128 * 32 * 32, "longest_edge": 768 * 32 * 32}

TOKENS_PER_SECOND = 13.0


def _clips(processor: Any) -> SoundingClips:
    return SoundingClips(
        clips=ClipGrid.read(processor, fps=2.0, pixels=CLIP_PIXELS),
        sounds=MelWindows.read(processor),
        tokens_per_second=TOKENS_PER_SECOND,
        seen="<|video_pad|>",
        heard="<|audio_pad|>",
        opening="<|audio_start|>",
        closing="<|audio_end|>",
    )


SECONDS = "video_second_per_grid"
SOUNDS = {"input_features": Field(axis="audio", stretch=-1), "feature_attention_mask": Field(axis="audio", stretch=-1)}
_sounds = partial(sound_tensors, fields=SOUNDS)

FAMILY = Family(
    name="qwen3_omni",
    title="Qwen3-Omni",
    processors=("Qwen3OmniMoeProcessor",),
    models=("Qwen3OmniMoeThinkerForConditionalGeneration", "Qwen3OmniMoeForConditionalGeneration"),
    turns=TurnStyle(opening="<|im_start|>{role}\n", closing="<|im_end|>"),
    media={
        "image": Medium(mark="<|image_pad|>", pad="<|image_pad|>", geometry=PatchGrid.read),
        "video": Medium(mark="<|video_pad|>", pad="<|video_pad|>", geometry=_clips),
        "audio": Medium(mark="<|audio_pad|>", pad="<|audio_pad|>", geometry=MelWindows.read),
    },
    fields={
        "pixel_values": Field(axis="image_patch", counted_by=("image_grid_thw",)),
        "image_grid_thw": Field(axis="image"),
        "pixel_values_videos": Field(axis="video_patch", counted_by=("video_grid_thw",)),
        "video_grid_thw": Field(axis="video"),
        SECONDS: Field(axis="video"),
        **SOUNDS,
        "audio_feature_lengths": Field(axis="audio"),
    },
    tensors=partial(patch_and_sound_tensors, clip_pixels=CLIP_PIXELS, seconds=SECONDS, sounds=_sounds),
    raw=partial(RawPatches.read, seconds=SECONDS, sounds=_sounds),
    positions=MRope(
        merge=lambda processor: int(processor.image_processor.merge_size),
        tokens_per_second=TOKENS_PER_SECOND,
        fractional=True,
        after="last",
    ),
    # 30B-A3B.
    work=work(
        Tower(hidden=2048, layers=48, feed_forward=6144, keys=512, vocabulary=151936),
        Tower(hidden=1152, layers=27, feed_forward=4304, gated=False),
    ),
)
