"""One conversation by itself, the independent truth: what the processor and its chat template make of it.

Media are opened by `lading.media`, because transformers would decode clips with another library; from there on
everything (marks, grids, tokens, pixels) is the processor's own.

What is trained on is found without looking for a marker: change what the assistant says, and see what changes. Every
answer in turn is replaced by a character that nobody writes. What stands before and behind it in the rendered text
stands before and behind the answer too; with the closing marker, that is what the assistant says. (A space that the
template writes in front of it is part of the answer, unless the prompt of an answer ends in it.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from lading.encode.processor_facts import ProcessorFacts
from lading.encode.template import messages_for_template
from lading.errors import Reason, SkipSample
from lading.fields import IGNORE_INDEX
from lading.media import audio, image, video
from lading.media.pixels import clip_frames, of_kind, sampling_rate
from lading.media.probe import metadata
from lading.media.video import HEARD
from lading.records import Conversation, Footprint, MediaPart, Message, TextPart
from lading.samples.samples import Samples

TYPES = ("mm_token_type_ids", "token_type_ids")
TEMPORAL_PATCH = 2
"""Frames in a row of a clip's grid, for the processors that take a clip's rate."""
PROBE = "\ue000"
"""A character for private use: no template writes it, trims it or reads anything into it."""
EDGE = 2
"""Tokens beside a medium that may be merged with the text around its pads."""

Span = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Alone:
    """One conversation by itself. Law: its tokens, labels and pixels come from the processor, not from `encode` or
    `packing`.
    """

    conversation: Conversation
    own: Mapping[str, Tensor]
    """What the processor gives."""
    inputs: Mapping[str, object]
    """What a model is fed."""
    labels: tuple[int, ...] | None
    """Unshifted; `None` where the chat template does not tell."""
    not_compared: str = ""
    """Why there are no labels."""

    @property
    def ids(self) -> Tensor:
        """[T]."""
        return self.own["input_ids"][0]


def alone(samples: Samples, index: int) -> Alone:
    """Sample `index` by itself."""
    facts, conversation = samples.facts, samples.conversation(index)
    own = own_inputs(facts, conversation, samples.encoder.footprints(conversation))
    labels, not_compared = None, ""
    try:
        labels = tuple(labels_alone(facts, conversation, own["input_ids"][0].tolist()))
    except SkipSample as skip:
        not_compared = f"labels: {skip.found}"
    return Alone(
        conversation=conversation,
        own=own,
        inputs=model_inputs(facts, own, conversation),
        labels=labels,
        not_compared=not_compared,
    )


def chat_template(facts: ProcessorFacts) -> str:
    """The processor's chat template, wherever it keeps it."""
    return str(facts.processor.chat_template or facts.processor.tokenizer.chat_template)


def rendered(
    facts: ProcessorFacts,
    messages: tuple[Message, ...],
    tools: Sequence[Mapping[str, Any]] = (),
    *,
    prompt: bool = False,
) -> str:
    """What the processor's own chat template makes of messages; with `prompt`, up to where the next answer begins."""
    return str(
        facts.processor.apply_chat_template(
            messages_for_template(messages, system_as_text=facts.family.system_as_text),
            chat_template=chat_template(facts),
            tools=list(tools) or None,
            **facts.template_options,
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
        messages,
        tools=list(conversation.tools) or None,
        **facts.template_options,
        tokenize=True,
        return_dict=True,
        return_tensors="pt",
        chat_template=chat_template(facts),
    )
    return dict(made)


def _with_clips(facts: ProcessorFacts, conversation: Conversation, footprints: list[Footprint]) -> dict[str, Tensor]:
    processor, parts = facts.processor, conversation.media
    text, first = rendered(facts, conversation.messages, conversation.tools), processor.tokenizer.bos_token
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


def labels_alone(facts: ProcessorFacts, conversation: Conversation, ids: Sequence[int]) -> list[int]:
    """The labels of a conversation whose tokens are `ids`, unshifted. `SkipSample` where the template does not tell."""
    from jinja2 import TemplateError

    text = rendered(facts, conversation.messages)
    try:
        spans = list(_answers(facts, conversation, text))
    except TemplateError as error:
        raise _not_compared(conversation, f"a chat template that refuses another answer ({error})") from error
    tokenizer = facts.processor.tokenizer
    first = tokenizer.bos_token
    plain = tokenizer(text, add_special_tokens=not (first and text.startswith(first)), return_offsets_mapping=True)
    offsets: list[Span] = plain["offset_mapping"]
    trained = [any(start <= own[0] < stop for start, stop in spans) for own in offsets]
    labels = [IGNORE_INDEX] * len(ids)
    cursor = 0
    for first_token, stop in _segments(facts, text, offsets):
        if not any(trained[first_token:stop]):
            continue
        begin, end = _without_edges(trained, first_token, stop, len(offsets))
        segment = plain["input_ids"][begin:end]
        place = _find(ids, segment, cursor)
        if place < 0:
            raise _not_compared(conversation, "an answer that its own processor tokenises otherwise beside its media")
        for token in range(begin, end):
            if trained[token]:
                labels[place + token - begin] = plain["input_ids"][token]
        cursor = place + len(segment)
    return labels


def _answers(facts: ProcessorFacts, conversation: Conversation, text: str) -> Iterator[Span]:
    """Characters of every answer, its closing marker included."""
    closing = facts.family.turns.closing
    for place, message in enumerate(conversation.messages):
        if message.role != "assistant" or not message.weight:
            continue
        if message.thought or message.calls:
            raise _not_compared(conversation, "an answer with reasoning or tool calls")
        if any(isinstance(part, MediaPart) for part in message.parts):
            raise _not_compared(conversation, "an answer that shows a medium")
        earlier, probe = conversation.messages[:place], replace(message, parts=(TextPart(text=PROBE),))
        changed = rendered(facts, (*earlier, probe, *conversation.messages[place + 1 :]), conversation.tools)
        before, found, behind = changed.partition(PROBE)
        if not (found and text.startswith(before) and text.endswith(behind)):
            raise _not_compared(conversation, "a chat template that writes more than the answer when an answer changes")
        stop = len(text) - len(behind)
        gap, closed, _ = behind.partition(closing)
        ends = stop + len(gap) + len(closing) if closed and not gap.strip() else len(text)
        yield _beginning(facts, earlier, before), ends


def _beginning(facts: ProcessorFacts, earlier: tuple[Message, ...], before: str) -> int:
    """Where the answer begins that the text `before` ends at: behind its prompt, if only blanks lie between."""
    prompt = rendered(facts, earlier, prompt=True) if earlier else before
    return len(prompt) if before.startswith(prompt) and not before[len(prompt) :].strip() else len(before)


def _segments(facts: ProcessorFacts, text: str, offsets: Sequence[Span]) -> Iterator[Span]:
    """Tokens between media, as (first, one past the last)."""
    marks = "|".join(re.escape(medium.mark) for medium in facts.tokeniser.media.values())
    shown = [match.span() for match in re.finditer(marks, text)] if marks else []
    first = 0
    for start, stop in shown:
        inside = [token for token, (begin, end) in enumerate(offsets) if start <= begin < stop and end > begin]
        yield first, inside[0]
        first = inside[-1] + 1
    yield first, len(offsets)


def _without_edges(trained: Sequence[bool], first: int, stop: int, tokens: int) -> Span:
    """The segment without untrained tokens right beside a medium."""
    for _ in range(EDGE):
        first += first > 0 and first + 1 < stop and not trained[first]
        stop -= stop < tokens and first + 1 < stop and not trained[stop - 1]
    return first, stop


def _find(ids: Sequence[int], segment: Sequence[int], start: int) -> int:
    """Where the segment stands in `ids`, from `start` on; -1 where it does not."""
    wanted, length = list(segment), len(segment)
    return next(
        (place for place in range(start, len(ids) - length + 1) if list(ids[place : place + length]) == wanted), -1
    )


def _not_compared(conversation: Conversation, found: str) -> SkipSample:
    return SkipSample(
        Reason.TEMPLATE_REFUSED, found=found, wanted="one whose labels can be told apart", where=conversation.key.where
    )
