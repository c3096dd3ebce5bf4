"""Examples → one padded batch, as a collate function gives it: conversation, tokenise, media and collate, wired."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from lading.encode import Encoder
from lading.encode.processor_facts import ProcessorFacts, read_processor
from lading.errors import ConfigError, Reason, SkipSample
from lading.families import find, for_processor
from lading.records import Conversation, Footprint, MediaPart, Message, SampleKey
from lading.tensors import insert_unsaid
from lading.vlm.example_form import COLUMN, from_example, read_turns
from lading.vlm.padded_batches import pad_samples, shift_batch
from lading.vlm.sample_inputs import as_inputs

logger = logging.getLogger(__name__)

PARTS = ("image_processor", "video_processor", "feature_extractor")
"""The parts of a processor whose settings decide about media."""

_BORDERS: dict[tuple[int, str | None], tuple[str, ProcessorFacts]] = {}
"""By processor and family: what it looked like when it was read, and its facts, which keeps the processor. (While it
does, no other processor has its number.)"""
REMEMBERED = 16
"""Boundaries that are kept."""


def facts_of(processor: Any, family: str | None = None) -> ProcessorFacts:
    """A processor's facts, read once: markers, pads and geometries are not derived again for every batch.

    A processor that was changed since (another template, pad token, or any setting of its media) is read anew.
    """
    declared = for_processor(type(processor).__name__)
    if family is not None and declared is not None and declared.name != family:
        raise ConfigError(
            found=f"a {type(processor).__name__}, of {declared.title}",
            wanted=f"a processor of {find(family).title}",
            consequence="its media would be counted by another family's rules",
        )
    key, looks = (id(processor), family), _looks(processor)
    known = _BORDERS.get(key)
    if known is None or known[0] != looks:
        known = looks, read_processor(processor, family)
        if len(_BORDERS) >= REMEMBERED:
            _BORDERS.clear()
        _BORDERS[key] = known
    return known[1]


def _looks(processor: Any) -> str:
    """What facts were read from, in short."""
    tokenizer = getattr(processor, "tokenizer", None)
    parts = [processor, *(getattr(processor, name, None) for name in PARTS)]
    return repr(
        (
            *(getattr(tokenizer, name, None) for name in ("chat_template", "pad_token_id")),
            *({name: value for name, value in vars(part).items() if _is_setting(value)} for part in parts if part),
        )
    )


def _is_setting(value: object) -> bool:
    """Whether it is a number, a text, a size …: no part with settings of its own, and no table made of settings."""
    return not (hasattr(value, "from_pretrained") or hasattr(value, "__array__"))


def conversations_of(examples: Sequence[Mapping[str, Any]]) -> list[Conversation]:
    """The conversations of a batch of examples; a bad one is raised with its place in the batch."""
    if not examples:
        raise ConfigError(found="no examples", wanted="at least one", where="collate")
    return [
        from_example(example, SampleKey(index=place, source="batch", where=f"example {place} of the batch"))
        for place, example in enumerate(examples)
    ]


def talks_of(conversations: Sequence[Any]) -> list[Conversation]:
    """Conversations that are only looked at: they need have no answer, and their media need not be at hand."""
    keys = [SampleKey(index=n, source="batch", where=f"conversation {n}") for n in range(len(conversations))]
    return [read_turns({COLUMN: turns}, key) for turns, key in zip(conversations, keys, strict=True)]


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
    facts = facts_of(processor, family)
    conversations = conversations_of(examples)
    if max_length is not None:
        lengths = exact_lengths(conversations, facts, prefix)
        conversations = [conversations[place] for place in fitting(lengths, max_length)]
    encoder = Encoder(facts=facts)
    encoded = [encoder.encode(conversation) for conversation in conversations]
    inputs = [as_inputs(insert_unsaid(sample, prefix) if prefix else sample) for sample in encoded]
    batch = pad_samples(
        inputs,
        documents=[sample.document for sample in inputs],
        fields=facts.family.table,
        pad_token=facts.pad_token,
        length=max_length,
        left=processor.tokenizer.padding_side == "left",
    )
    if hook is not None:
        batch = hook(batch, conversations)
    return shift_batch(batch)


def exact_lengths(
    conversations: Sequence[Conversation], facts: ProcessorFacts, prefix: Sequence[int] = (), *, lenient: bool = False
) -> list[int]:
    """How many tokens each conversation has, media and a prefix to every answer included, from headers alone.

    With `lenient`, a medium that cannot be measured has its mark alone; without, that is a `SkipSample`.
    """
    encoder = Encoder(facts=facts)
    footprints = _marks_at_least if lenient else Encoder.footprints
    tokenised = encoder.tokenise([(talk, footprints(encoder, talk)) for talk in conversations])
    for sample in tokenised:
        if isinstance(sample, SkipSample):
            raise sample
    return [
        len(sample.ids) + len(prefix) * len(sample.spans) for sample in tokenised if not isinstance(sample, SkipSample)
    ]


def _marks_at_least(encoder: Encoder, conversation: Conversation) -> list[Footprint]:
    found = zip(conversation.media, known_footprints(encoder, conversation), strict=True)
    return [own or Footprint(kind=part.kind, runs=(1,), rows=0) for part, own in found]


def known_footprints(encoder: Encoder, conversation: Conversation) -> list[Footprint | None]:
    """What each medium takes up, in reading order; `None` for one that cannot be measured."""
    try:
        return list(encoder.footprints(conversation))
    except SkipSample:
        if not {part.kind for part in conversation.media} <= set(encoder.facts.geometries):
            raise  # the family has no mark for it that could be counted
    can = [_can_be_measured(encoder, _only(conversation, [part])) for part in conversation.media]
    known = [part for part, good in zip(conversation.media, can, strict=True) if good]
    found = iter(encoder.footprints(_only(conversation, known)))
    return [next(found) if good else None for good in can]


def _can_be_measured(encoder: Encoder, conversation: Conversation) -> bool:
    try:
        encoder.footprints(conversation)
    except SkipSample:
        return False
    return True


def _only(conversation: Conversation, media: Sequence[MediaPart]) -> Conversation:
    """The conversation with just these media in it."""
    return replace(conversation, messages=(Message(role="user", parts=tuple(media)),))


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
