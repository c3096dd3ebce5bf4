"""Examples → one padded batch, as a collate function gives it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import compress
from typing import Any

import torch

from lading.encode.encoder import Encoder
from lading.encode.processor_facts import read_processor
from lading.encode.tokeniser import TokenisedSample
from lading.errors import ConfigError, Reason, SkipSample
from lading.families import find, for_processor
from lading.fields import IGNORE_INDEX, Field
from lading.media import image
from lading.records import Conversation, Footprint, MediaPart, Message, SampleKey, TextPart
from lading.tensors import insert_unsaid, pad, stack
from lading.vlm.examples import CONVERSATION, from_example, read_turns
from lading.vlm.padded_batches import as_inputs, pad_samples, shift_batch

logger = logging.getLogger(__name__)

PARTS = ("image_processor", "video_processor", "feature_extractor")
"""The parts of a processor whose settings decide about media."""

_ENCODERS: dict[tuple[int, str | None], tuple[str, Encoder]] = {}
"""By processor and family: what it looked like when it was read, and its encoder, which keeps the processor. (While it
does, no other processor has its number.)"""
REMEMBERED = 16
"""Encoders that are kept."""


def encoder_of(processor: Any, family: str | None = None) -> Encoder:
    """A processor's encoder, made once: markers, pads and geometries are not derived again for every batch.

    A processor that was changed since (another template, pad token, or any setting of its media) is read anew.
    """
    if family is not None:
        declared = for_processor(type(processor).__name__)
        if declared is not None and declared.name != family:
            raise ConfigError(
                found=f"a {type(processor).__name__}, of {declared.title}",
                wanted=f"a processor of {find(family).title}",
                consequence="its media would be counted by another family's rules",
            )
    key, settings = (id(processor), family), _settings(processor)
    known = _ENCODERS.get(key)
    if known is None or known[0] != settings:
        known = settings, Encoder(facts=read_processor(processor, family))
        if len(_ENCODERS) >= REMEMBERED:
            _ENCODERS.clear()
        _ENCODERS[key] = known
    return known[1]


def _settings(processor: Any) -> str:
    """What an encoder is made from, in short: numbers, texts, sizes …, and no tables made of them."""
    tokenizer = getattr(processor, "tokenizer", None)
    parts = [processor, *(getattr(processor, name, None) for name in PARTS)]
    of_parts = [
        {
            name: value
            for name, value in vars(part).items()
            if not (hasattr(value, "from_pretrained") or hasattr(value, "__array__"))
        }
        for part in parts
        if part
    ]
    return repr([*(getattr(tokenizer, name, None) for name in ("chat_template", "pad_token_id")), *of_parts])


def conversations_of(examples: Sequence[Mapping[str, Any]]) -> list[Conversation]:
    """The conversations of a batch of examples; a bad one is raised with its place in the batch."""
    if not examples:
        raise ConfigError(found="no examples", wanted="at least one", where="collate")
    return [
        from_example(example, SampleKey(index=place, source="batch", where=f"example {place} of the batch"))
        for place, example in enumerate(examples)
    ]


def read_conversations(conversations: Sequence[Any]) -> list[Conversation]:
    """Conversations that are only looked at: they need have no answer, and their media need not be at hand."""
    return [
        read_turns({CONVERSATION: turns}, SampleKey(index=place, source="batch", where=f"conversation {place}"))
        for place, turns in enumerate(conversations)
    ]


def collate_examples(
    examples: Sequence[Mapping[str, Any]],
    processor: Any,
    *,
    family: str | None = None,
    max_length: int | None = None,
    prefix: Sequence[int] = (),
    hook: Callable[[dict[str, Any], Sequence[Conversation]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """One row an example: ids, mask, labels and media, shifted by one as the pages say.

    With `max_length`, examples with more tokens are left out (all of them: an error), and rows have that length.
    `prefix` are tokens put in front of every answer, seen and not trained on. `hook` may change the padded batch before
    it is shifted; it must then see to the labels.
    """
    encoder = encoder_of(processor, family)
    conversations = conversations_of(examples)
    tokenised = _tokenised(encoder, [(own, encoder.footprints(own)) for own in conversations])
    if max_length is not None:
        lengths = [len(sample.ids) + len(prefix) * len(sample.spans) for sample in tokenised]
        tokenised = [tokenised[place] for place in fitting(lengths, max_length)]
    encoded = [encoder.with_media(sample) for sample in tokenised]
    if prefix:
        encoded = [insert_unsaid(sample, prefix) for sample in encoded]
    batch = pad_samples(
        [as_inputs(sample) for sample in encoded],
        documents=[sample.document for sample in encoded],
        fields=encoder.facts.family.table,
        pad_token=encoder.facts.pad_token,
        length=max_length,
        left=processor.tokenizer.padding_side == "left",
    )
    return shift_batch(batch if hook is None else hook(batch, [sample.conversation for sample in tokenised]))


def _tokenised(encoder: Encoder, samples: Sequence[tuple[Conversation, Sequence[Footprint]]]) -> list[TokenisedSample]:
    """Conversations as tokens, without pixels; the first that cannot be used is raised."""
    found = encoder.tokenise(samples)
    for sample in found:
        if isinstance(sample, SkipSample):
            raise sample
    return [sample for sample in found if isinstance(sample, TokenisedSample)]


def lengths_at_least(conversations: Sequence[Conversation], encoder: Encoder) -> list[int]:
    """How many tokens each conversation has, from headers alone; a medium that cannot be measured has one."""
    sized = [
        (
            conversation,
            [
                own or Footprint(kind=part.kind, runs=(1,), rows=0)
                for part, own in zip(conversation.media, known_footprints(encoder, conversation), strict=True)
            ],
        )
        for conversation in conversations
    ]
    return [len(sample.ids) for sample in _tokenised(encoder, sized)]


def known_footprints(encoder: Encoder, conversation: Conversation) -> list[Footprint | None]:
    """What each medium takes up, in reading order; `None` for one that cannot be measured."""
    media = conversation.media
    try:
        return list(encoder.footprints(conversation))
    except SkipSample:
        if not {part.kind for part in media} <= set(encoder.facts.geometries):
            raise  # the family has no mark for it that could be counted
    can = [bool(_footprints(encoder, conversation, [part])) for part in media]
    found = iter(_footprints(encoder, conversation, list(compress(media, can))))
    return [next(found) if good else None for good in can]


def _footprints(encoder: Encoder, conversation: Conversation, media: Sequence[MediaPart]) -> list[Footprint]:
    """What these media would take up if there were no others; nothing, where one of them cannot be measured."""
    try:
        return encoder.footprints(replace(conversation, messages=(Message(role="user", parts=tuple(media)),)))
    except SkipSample:
        return []


class AllTooLong(SkipSample, ValueError):
    """Every sample of a batch has too many tokens; a robust collate function draws another batch."""


def fitting(lengths: Sequence[int], max_length: int) -> list[int]:
    """Which samples have at most `max_length` tokens. The others are logged; where none is left, that is an error."""
    kept = [place for place, length in enumerate(lengths) if length <= max_length]
    if not kept:
        raise AllTooLong(
            Reason.TOO_LONG,
            found=f"only samples of {', '.join(map(str, lengths))} tokens in the batch",
            wanted=f"one of at most {max_length} (max_length)",
            where="collate",
        )
    if len(kept) < len(lengths):
        logger.warning("left out %d of %d samples over %d tokens", len(lengths) - len(kept), len(lengths), max_length)
    return kept


def nemotron_parse_collate_fn(
    examples: Sequence[Mapping[str, Any]],
    processor: Any,
    task_prompt: str = "</s><s><predict_bbox><predict_classes><output_markdown>",
) -> dict[str, Any]:
    """Nemotron-Parse, an encoder and a decoder without a chat template: one page and its text an example.

    The batch has `pixel_values`, and the prompt and the answer as decoder inputs with the prompt unlabelled.
    `decoder_input_ids` is the text without its last token and `labels` the text without its first, so nothing needs to
    be shifted any more; `input_ids` and `attention_mask` are the same text for whoever wants them.
    """
    conversations, tokenizer = conversations_of(examples), processor.tokenizer
    if tokenizer.pad_token_id is None:
        raise ConfigError(found="no pad token on the tokenizer", wanted="one; set tokenizer.pad_token")
    prompt = tokenizer.encode(task_prompt, add_special_tokens=False)
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
    pages, answers = [], []
    for conversation in conversations:
        page, text = _page_and_answer(conversation)
        pages.append(image.decode(page))
        own = tokenizer.encode(text.removesuffix(tokenizer.eos_token or ""), add_special_tokens=False)
        answers.append([*own, *end])
    shifted = shift_batch(
        {
            "input_ids": _rows([[*prompt, *answer] for answer in answers], tokenizer.pad_token_id),
            "attention_mask": _rows([[1] * (len(prompt) + len(answer)) for answer in answers], 0),
            "labels": _rows([[*[IGNORE_INDEX] * len(prompt), *answer] for answer in answers], IGNORE_INDEX),
        }
    )
    return {
        "pixel_values": processor.image_processor(pages, return_tensors="pt")["pixel_values"],
        **shifted,
        "decoder_input_ids": shifted["input_ids"],
        "decoder_attention_mask": shifted["attention_mask"],
    }


def _page_and_answer(conversation: Conversation) -> tuple[MediaPart, str]:
    where, media = conversation.key.where, conversation.media
    pages = [part for part in media if part.kind == "image"]
    if len(pages) != 1 or len(media) != 1:
        found = f"{len(pages)} pictures and {len(media) - len(pages)} other media"
        raise SkipSample(Reason.BAD_ROW, found=found, wanted="one page", where=where)
    answers = [message for message in conversation.messages if message.role == "assistant"]
    if len(answers) != 1:
        raise SkipSample(Reason.BAD_ROW, found=f"{len(answers)} answers", wanted="one", where=where)
    return pages[0], "".join(part.text for part in answers[0].parts if isinstance(part, TextPart))


def _rows(rows: list[list[int]], value: int) -> torch.Tensor:
    longest = max(len(row) for row in rows)
    return stack([pad(torch.tensor(row), longest, Field(axis="token"), value) for row in rows])
