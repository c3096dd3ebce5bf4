"""What is trained on, found without looking for a marker: change what the assistant says, and see what changes.

Every answer in turn is put aside for a mark that nobody writes. What stands before and behind the mark in the rendered
text stands before and behind the answer too; with the closing marker, that is what the assistant says. (A space that
the template writes in front of it is said too, unless the prompt of an answer ends in it.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lading.errors import Reason, SkipSample
from lading.fields import IGNORE_INDEX
from lading.loader import ProcessorFacts
from lading.records import Conversation, MediaPart, Message, TextPart
from lading.verify.alone import rendered

STRANGER = "\ue000"
"""A character for private use: no template writes it, trims it or reads anything into it."""
EDGE = 2
"""Tokens beside a medium that may have grown together with the text that stands around its pads."""

Span = tuple[int, int]


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
        if message.role != "assistant":
            continue
        if any(isinstance(part, MediaPart) for part in message.parts):
            raise _not_compared(conversation, "an answer that shows a medium")
        earlier, stranger = conversation.messages[:place], replace(message, parts=(TextPart(text=STRANGER),))
        changed = rendered(facts, (*earlier, stranger, *conversation.messages[place + 1 :]))
        before, found, behind = changed.partition(STRANGER)
        if not (found and text.startswith(before) and text.endswith(behind)):
            raise _not_compared(conversation, "a chat template that writes more than the answer when an answer changes")
        stop = len(text) - len(behind)
        gap, closed, _ = behind.partition(closing)
        ends = stop + len(gap) + len(closing) if closed and not gap.strip() else len(text)
        yield _beginning(facts, earlier, before), ends


def _beginning(facts: ProcessorFacts, earlier: tuple[Message, ...], before: str) -> int:
    """Where an answer begins that `before` stands in front of: behind its prompt, if only blanks lie between."""
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
