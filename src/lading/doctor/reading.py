"""A row → its conversation, or the one problem for which the loader would refuse it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lading.conversation import Layout, read_conversation
from lading.conversation.keys import Reading
from lading.doctor.kinds import KINDS, Problem
from lading.errors import CorpusError, Reason, SkipSample
from lading.fields import MediaKind
from lading.records import Conversation
from lading.samples.layouts import source_layout, stated_layout
from lading.sources import Corpus
from lading.sources.corpus import Source

CORRUPT: Mapping[MediaKind, str] = {"image": "corrupt_picture", "video": "corrupt_clip", "audio": "corrupt_sound"}
"""What the loader calls `corrupt_media`, by what the medium is."""
LENIENT = Reading(preference="chosen", loss_weights=True, ignore_keys=("*",))
"""Reads what a run would refuse, to find all of it."""
CONVERSATION_COLUMNS = (
    *("messages", "conversations", "conversation", "instruction", "output"),
    *("prompt", "completion", "query", "response", "question", "answer", "texts"),
)
"""Columns that hold a conversation. A row with one of them that is refused is wrong inside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Read:
    """A row that can be read: what stands in it, and what it says."""

    value: Mapping[str, Any]
    layout: Layout
    conversation: Conversation


def forgiving_layout(source: Source) -> tuple[Layout, CorpusError | None]:
    """How the rows of a source are read: as the loader reads them, or row by row where it refuses, and why it does."""
    try:
        return source_layout(source, LENIENT), None
    except CorpusError as error:
        return stated_layout(source.config, LENIENT), error


def read(corpus: Corpus, layouts: Sequence[Layout], index: int) -> Read | Problem:
    """Sample `index`, or why it cannot be read."""
    try:
        row = corpus.row(index)
    except SkipSample as skip:
        return Problem(_unparsed(skip), refusal_text(skip))
    layout = layouts[corpus.locate(index)[0]]
    try:
        conversation = read_conversation(row, layout)
    except SkipSample as skip:
        return Problem(_refused(skip, row.value, layout), refusal_text(skip))
    return Read(value=row.value, layout=layout, conversation=conversation)


def refusal_text(skip: SkipSample) -> str:
    """What was found and what was wanted, without the place."""
    return f"{skip.found}; wanted {skip.wanted}" if skip.wanted else skip.found


def kind_of(reason: Reason, medium: MediaKind | None = None) -> str:
    """The kind for which the loader has a reason.

    >>> kind_of(Reason.TOO_LONG), kind_of(Reason.CORRUPT_MEDIA, "image")
    ('too_long', 'corrupt_picture')
    """
    if reason == Reason.CORRUPT_MEDIA:
        return CORRUPT[medium] if medium is not None else "unreadable_medium"
    if reason == Reason.BAD_ROW:
        return "bad_message"
    return reason.value if reason.value in KINDS else "unexpected_error"


def _unparsed(skip: SkipSample) -> str:
    if isinstance(skip.__cause__, UnicodeDecodeError):
        return "not_utf8"
    if skip.reason == Reason.BAD_ROW:
        # With a cause it is storage that broke (a row group); without one, the row is JSON of another type.
        return "not_an_object" if skip.__cause__ is None else "unreadable_row"
    return kind_of(skip.reason)


def _refused(skip: SkipSample, value: Mapping[str, Any], layout: Layout) -> str:
    if skip.reason != Reason.BAD_ROW:
        return kind_of(skip.reason)
    if isinstance(skip.__cause__, UnicodeEncodeError):
        return "half_character"
    if not any(name in value for name in (*CONVERSATION_COLUMNS, *layout.columns.values())):
        return "unknown_columns"
    return "bad_message"


def shown(text: str, most: int = 80) -> str:
    """A text, short enough for a line.

    >>> shown("a" * 9, 5)
    '"aaaaa…"'
    """
    return json.dumps(text if len(text) <= most else f"{text[:most]}…", ensure_ascii=False)
