"""Gemma 4: pictures as padded patches with their places, both-way sight within a picture, plain turns of its own."""

from __future__ import annotations

from functools import partial

from lading.family import Family, LayerSight, Medium, Tower, TurnStyle, work
from lading.fields import Field
from lading.media.pixels import processor_tensors
from lading.media.probe import clip_probe, image_count

FAMILY = Family(
    name="gemma4",
    title="Gemma 4",
    processors=("Gemma4Processor",),
    models=("Gemma4ForConditionalGeneration",),
    turns=TurnStyle(
        opening="<|turn>{role}\n",
        closing="<turn|>",
        names={"assistant": "model"},
        unsaid=("<|channel>thought\n<channel|>",),
    ),
    media={
        # Every frame of a clip is a run of pads behind its time. (transformers 5.22 has the model's `forward` drop
        # `num_frames_per_video` on the way, so that it refuses any clip, packed or not.)
        "video": Medium(
            mark="<|video|>",
            pad="<|video|>",
            geometry=partial(clip_probe, pad="<|video|>", rows=lambda made: made["num_frames_per_video"]),
        ),
        "image": Medium(
            mark="<|image|>",
            pad="<|image|>",
            geometry=partial(image_count, pad="<|image|>", frame="<|image>{}<image|>"),
        ),
    },
    fields={
        "pixel_values": Field(axis="image"),
        "image_position_ids": Field(axis="image"),
        "pixel_values_videos": Field(axis="video_run", counted_by=("num_frames_per_video",)),
        "video_position_ids": Field(axis="video_run", counted_by=("num_frames_per_video",)),
        "num_frames_per_video": Field(axis="video"),
    },
    tensors=processor_tensors,
    # Only the larger models let the tokens of a picture see each other, and only in sliding layers.
    layers=lambda config: {
        "full_attention": LayerSight(),
        "sliding_attention": LayerSight(
            window=config.sliding_window, both_ways=config.use_bidirectional_attention == "vision"
        ),
    },
    token_types="mm_token_type_ids",
    system_as_text=True,
    # E4B.
    work=work(
        Tower(hidden=2560, layers=42, feed_forward=10240, keys=512, vocabulary=262144),
        Tower(hidden=768, layers=16, feed_forward=3072),
    ),
)
