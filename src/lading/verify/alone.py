"""One conversation by itself, the independent truth: the whole processor on its messages and media.

Media are opened by `lading.media`, because transformers would decode clips with another library; from there on
everything (marks, grids, tokens, pixels) is the processor's own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lading.encode.template import messages_for_template
from lading.loader import ProcessorFacts
from lading.media import audio, image, video
from lading.media.pixels import clip_frames, of_kind, sampling_rate
from lading.media.probe import metadata
from lading.media.video import HEARD
from lading.records import Conversation, Footprint, Message

TYPES = ("mm_token_type_ids", "token_type_ids")
TEMPORAL_PATCH = 2
"""Frames in a row of a clip's grid, for the processors that are told a clip's rate."""


def chat_template(facts: ProcessorFacts) -> str:
    """The processor's chat template, wherever it keeps it."""
    return str(facts.processor.chat_template or facts.processor.tokenizer.chat_template)


def rendered(facts: ProcessorFacts, messages: tuple[Message, ...], *, prompt: bool = False) -> str:
    """What the processor's own chat template makes of messages; with `prompt`, up to where the next answer begins."""
    return str(
        facts.processor.apply_chat_template(
            messages_for_template(messages, system_as_text=facts.family.system_as_text),
            chat_template=chat_template(facts),
            add_generation_prompt=prompt,
            tokenize=False,
        )
    )


def own_inputs(facts: ProcessorFacts, conversation: Conversation, footprints: list[Footprint]) -> dict[str, Tensor]:
    """What transformers makes of a conversation, [1, T] for what has one entry a token. Footprints say which frames of
    a clip are used, and nothing else.
    """
    clips = any(part.kind == "video" for part in conversation.media)
    made = _with_clips(facts, conversation, footprints) if clips else _without_clips(facts, conversation)
    wanted = {*facts.family.fields, *TYPES, "input_ids", "attention_mask"}
    return {name: value for name, value in made.items() if name in wanted}


def _without_clips(facts: ProcessorFacts, conversation: Conversation) -> dict[str, Tensor]:
    messages = messages_for_template(conversation.messages, system_as_text=facts.family.system_as_text)
    media = iter(conversation.media)
    places = (part for message in messages if isinstance(message["content"], list) for part in message["content"])
    for part in places:
        if part["type"] == "image":
            part["image"] = image.decode(next(media))
        if part["type"] == "audio":
            part["audio"] = audio.decode(next(media), sampling_rate(facts.processor))
    made = facts.processor.apply_chat_template(
        messages, tokenize=True, return_dict=True, return_tensors="pt", chat_template=chat_template(facts)
    )
    return dict(made)


def _with_clips(facts: ProcessorFacts, conversation: Conversation, footprints: list[Footprint]) -> dict[str, Tensor]:
    processor, parts = facts.processor, conversation.media
    text, first = rendered(facts, conversation.messages), processor.tokenizer.bos_token
    clips = of_kind("video", parts, footprints)
    pictures = [image.decode(part) for part in parts if part.kind == "image"]
    heard = any(footprint.sound is not None for _, footprint in clips)
    options: dict[str, Any] = {}
    if pictures:
        options["images"] = [pictures]
    if "audio" in facts.geometries:
        # A processor that hears asks for the rate of the clip instead of reading its metadata.
        options["fps"] = TEMPORAL_PATCH / clips[0][1].seconds
        options[HEARD] = heard
        rate = sampling_rate(processor)
        sounds = [
            audio.decode(part, rate) if part.kind == "audio" else video.decode_sound(part, rate)
            for part, footprint in zip(parts, footprints, strict=True)
            if part.kind == "audio" or footprint.sound is not None
        ]
        if sounds:
            options["audio"] = sounds
    made = processor(
        text=[text],
        videos=[clip_frames(part, footprint) for part, footprint in clips],
        video_metadata=[metadata(video.measure(part), footprint.frames) for part, footprint in clips],
        do_sample_frames=False,
        return_tensors="pt",
        add_special_tokens=not (first and text.startswith(first)),
        **options,
    )
    return dict(made)


def model_inputs(facts: ProcessorFacts, own: dict[str, Tensor], conversation: Conversation) -> dict[str, Any]:
    """What transformers would feed its model for this conversation: one row, no positions."""
    heard = any(part.options.get(HEARD) for part in conversation.media)
    inputs: dict[str, Any] = {**own, "use_cache": False, **({HEARD: True} if heard else {})}
    grids = {"image_grid_thw", "video_grid_thw"} & set(own)
    if grids and facts.three_way is not None and "mm_token_type_ids" not in own:
        types = facts.processor.create_mm_token_type_ids(own["input_ids"].tolist())
        inputs["mm_token_type_ids"] = torch.tensor(types)
    return inputs
