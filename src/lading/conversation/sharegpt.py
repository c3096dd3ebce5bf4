"""ShareGPT rows: messages with marks in their text, media in lists beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lading.conversation import alpaca, openai
from lading.conversation.layout import Layout
from lading.conversation.references import read_medium
from lading.conversation.validate import refuse_half_characters, refuse_leftovers, refuse_tools, validate
from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import Conversation, MediaPart, Message, Part, Row, TextPart

_MARKS: Mapping[str, MediaKind] = {f"<{kind}>": kind for kind in MEDIA_KINDS}
_MARK_PATTERN = re.compile("(" + "|".join(_MARKS) + ")")


def read_conversation(row: Row, layout: Layout) -> Conversation:
    """The conversation a row holds; `SkipSample` when marks and media, roles or turns do not fit.

    >>> from lading.records import SampleKey
    >>> row = Row(key=SampleKey(index=0, source="s", where="d.jsonl:1"), value={
    ...     "conversations": [{"from": "human", "value": "Who?<image>"}, {"from": "gpt", "value": "Ada."}],
    ...     "images": ["ada.jpg"]})
    >>> [part.kind for part in read_conversation(row, Layout()).media]
    ['image']
    """
    where = row.key.where
    own = None if layout.has_messages(row.value) else alpaca.messages(row.value, where)
    messages = own or layout.messages(row.value, where)
    if not isinstance(messages, (list, tuple)):
        raise SkipSample(
            Reason.BAD_ROW, found=f"messages as a {type(messages).__name__}", wanted="a list of messages", where=where
        )
    refuse_tools(row.value, messages, where)
    waiting = {kind: iter(layout.media(row.value, kind)) for kind in MEDIA_KINDS}
    turns = tuple(_message(message, layout, waiting, where) for message in messages)
    turns = _with_system_column(turns, row.value)
    for kind, rest in waiting.items():
        refuse_leftovers(kind, len(list(rest)), where)
    return validate(Conversation(key=row.key, messages=turns))


def _with_system_column(turns: tuple[Message, ...], row: Mapping[str, Any]) -> tuple[Message, ...]:
    """A system prompt in a column of its own goes first, unless the messages have one."""
    system = row.get("system")
    if not isinstance(system, str) or not system or (turns and turns[0].role == "system"):
        return turns
    return (Message(role="system", parts=(TextPart(text=system),)), *turns)


def _message(message: object, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> Message:
    if not isinstance(message, Mapping):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a message as a {type(message).__name__}", wanted="an object", where=where
        )
    role = layout.role(message, where)
    content = layout.content(message, where)
    typed = isinstance(content, list)
    pieces: list[str | Part] = openai.pieces(content, where) if typed else [content]
    # Beside typed media, a mark in the text is a word like any other.
    marked = not any(isinstance(piece, MediaPart) for piece in pieces)
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, str):
            refuse_half_characters(piece, where)
            parts += _split(piece, layout, waiting, where) if marked else [TextPart(text=piece)]
        elif isinstance(piece, MediaPart):
            parts.append(_placed(piece, layout, waiting, where))
        else:
            raise SkipSample(
                Reason.BAD_ROW,
                found=f"message content as a {type(piece).__name__}",
                wanted="text, or a list of parts",
                where=where,
            )
    return Message(role=role, parts=tuple(parts))


def _split(text: str, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> list[Part]:
    parts: list[Part] = []
    for piece in _MARK_PATTERN.split(text):
        if piece in _MARKS:
            parts.append(_next_medium(_MARKS[piece], layout, waiting, where))
        elif piece:
            parts.append(TextPart(text=piece))
    return parts


def _placed(part: MediaPart, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> MediaPart:
    """A typed part with its medium in it, or, without one, the next of the row's list."""
    if part.reference is None:
        return _next_medium(part.kind, layout, waiting, where)
    return read_medium(part.kind, part.reference, layout, where)


def _next_medium(kind: MediaKind, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> MediaPart:
    value = next(waiting[kind], None)
    if value is None:
        raise SkipSample(
            Reason.MARKS_WITHOUT_MEDIA,
            found=f"more <{kind}> marks than {kind}s",
            wanted="one for each mark",
            where=where,
        )
    return read_medium(kind, value, layout, where)
