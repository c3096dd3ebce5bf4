"""ShareGPT rows: messages with marks in their text, media in lists beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lading.conversation import alpaca, openai
from lading.conversation.layout import Layout
from lading.conversation.validate import validate
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
    own = None if "messages" in layout.columns else alpaca.messages(row.value)
    messages = own or layout.messages(row.value, where)
    if not isinstance(messages, (list, tuple)):
        raise SkipSample(
            Reason.BAD_ROW, found=f"messages as a {type(messages).__name__}", wanted="a list of messages", where=where
        )
    waiting = {kind: iter(layout.media(row.value, kind)) for kind in MEDIA_KINDS}
    turns = tuple(_message(message, layout, waiting, where) for message in messages)
    for kind, rest in waiting.items():
        _refuse_leftovers(kind, len(list(rest)), where)
    return validate(Conversation(key=row.key, messages=turns))


def _message(message: object, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> Message:
    if not isinstance(message, Mapping):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a message as a {type(message).__name__}", wanted="an object", where=where
        )
    role = layout.role(message, where)
    content = layout.content(message, where)
    pieces: list[str | Part] = openai.pieces(content, where) if isinstance(content, list) else [content]
    parts: list[Part] = []
    for piece in pieces:
        if isinstance(piece, str):
            parts += _split(piece, layout, waiting, where)
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
    return _medium(part.kind, part.reference, layout, where)


def _next_medium(kind: MediaKind, layout: Layout, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> MediaPart:
    value = next(waiting[kind], None)
    if value is None:
        raise SkipSample(
            Reason.MARKS_WITHOUT_MEDIA,
            found=f"more <{kind}> marks than {kind}s",
            wanted="one for each mark",
            where=where,
        )
    return _medium(kind, value, layout, where)


def _medium(kind: MediaKind, value: Any, layout: Layout, where: str) -> MediaPart:
    """A medium as a row gives it: a path, bytes, an object, a list of frames, or a mapping of these with extras."""
    options: dict[str, Any] = {}
    if isinstance(value, Mapping):
        options = {key: extra for key, extra in value.items() if key not in ("path", "bytes")}
        value = value.get("bytes") or value.get("path")
    if value is None:
        raise SkipSample(Reason.BAD_ROW, found=f"{kind} without a path or bytes", wanted="one of them", where=where)
    if isinstance(value, (list, tuple)):
        return MediaPart(kind=kind, reference=tuple(_resolve(frame, layout) for frame in value), options=options)
    return MediaPart(kind=kind, reference=_resolve(value, layout), options=options)


def _resolve(value: Any, layout: Layout) -> Any:
    if isinstance(value, str) and layout.media_dir is not None:
        return str(layout.media_dir / Path(value))
    return value


def _refuse_leftovers(kind: MediaKind, left: int, where: str) -> None:
    if left:
        raise SkipSample(
            Reason.MEDIA_WITHOUT_MARKS,
            found=f"{left} more {kind}{'s' if left > 1 else ''} than <{kind}> marks",
            wanted="a mark in the text for each",
            where=where,
        )
