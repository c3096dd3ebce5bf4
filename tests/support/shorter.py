"""Truncation by trying everything: the independent truth."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lading.encode import Encoder
from lading.errors import SkipSample
from lading.loader import ProcessorFacts, Samples
from lading.records import Conversation, Encoded, MediaPart, Message, TextPart
from lading.sources import open_corpus

Turn = tuple[str, Sequence[str | dict[str, str]]]
"""A role, and what it says: text, or a typed part with a file name."""


def samples_of(facts: ProcessorFacts, folder: Path, *talks: Sequence[Turn]) -> Samples:
    """A corpus of these talks."""
    return Samples(corpus=open_corpus(write_talks(folder, *talks)), encoder=Encoder(facts=facts))


def write_talks(folder: Path, *talks: Sequence[Turn]) -> Path:
    """A file of these talks; media names are found beside it."""
    rows = [{"messages": [{"role": role, "content": _content(said)} for role, said in talk]} for talk in talks]
    path = folder / "talks.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _content(said: Sequence[str | dict[str, str]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": part} if isinstance(part, str) else part for part in said]


def shorter_talks(talk: Conversation) -> list[Conversation]:
    """Every conversation that a talk may be cut to, the longest first."""
    return [
        Conversation(key=talk.key, messages=(*talk.messages[:place], Message(role="assistant", parts=parts)))
        for place, message in reversed(list(enumerate(talk.messages)))
        if message.role == "assistant"
        for count in range(len(message.parts), 0, -1)
        if _may_end(message, count)
        for parts in [message.parts[:count]]
        if (place + 1, count) != (len(talk.messages), len(message.parts))
    ]


def _may_end(message: Message, count: int) -> bool:
    if count == len(message.parts):
        return True
    beside = message.parts[count - 1 : count + 1]
    spoken = any(isinstance(part, TextPart) and part.text.strip() for part in message.parts[:count])
    return spoken and any(isinstance(part, MediaPart) for part in beside)


def longest_fitting(samples: Samples, talk: Conversation, limit: int) -> Encoded | None:
    """The longest of them that has at most `limit` tokens, pixels and all."""
    return next((made for made in _encoded(samples, talk) if made.document.tokens <= limit), None)


def shorter_lengths(samples: Samples, talk: Conversation) -> list[int]:
    """How many tokens each of them has that can be trained on."""
    return [made.document.tokens for made in _encoded(samples, talk)]


def _encoded(samples: Samples, talk: Conversation) -> Iterator[Encoded]:
    for shorter in shorter_talks(talk):
        with suppress(SkipSample):
            yield samples.encoder.encode(shorter)
