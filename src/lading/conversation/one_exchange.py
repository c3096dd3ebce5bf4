"""What formats of one medium, one question and one answer share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.validate import refuse_half_characters
from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import Conversation, MediaPart, Message, Row, TextPart


def text(row: Row, column: str) -> str:
    """The text of a column.

    >>> from lading.records import SampleKey
    >>> text(Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"text": None}), "text")
    Traceback (most recent call last):
        ...
    lading.errors.SkipSample: found NoneType in column 'text'; wanted text [s row 0]
    """
    value = row.value.get(column)
    if not isinstance(value, str):
        raise SkipSample(
            Reason.BAD_ROW, found=f"{type(value).__name__} in column {column!r}", wanted="text", where=row.key.where
        )
    return value


def from_json(row: Row, column: str, wanted: str) -> Any:
    """What the text of a column says as JSON.

    >>> from lading.records import SampleKey
    >>> from_json(Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"a": "["}), "a", wanted="a list")
    Traceback (most recent call last):
        ...
    lading.errors.SkipSample: found malformed JSON in column 'a' (Expecting value at 1); wanted a list [s row 0]
    """
    try:
        return json.loads(text(row, column))
    except (ValueError, RecursionError) as error:
        # Nested too deeply, or a number of too many digits: these have no place.
        said = f"{error.msg} at {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise SkipSample(
            Reason.MALFORMED_JSON,
            found=f"malformed JSON in column {column!r} ({said})",
            wanted=wanted,
            where=row.key.where,
        ) from error


def medium(row: Row, column: str, kind: MediaKind, layout: Layout | None = None) -> MediaPart:
    """The medium of a column: a path, bytes, a decoded object, or `{"bytes": …, "path": …}` with extras.

    >>> from lading.records import SampleKey
    >>> row = Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"image": {"path": "a.jpg"}})
    >>> medium(row, "image", "image").reference
    'a.jpg'
    """
    value = row.value.get(column)
    where = f"{row.key.where}, column {column!r}"
    empty = isinstance(value, Mapping) and not (value.get("bytes") or value.get("path"))
    if value is None or empty or value in ("", b""):
        raise SkipSample(Reason.MISSING_MEDIA, found=f"no {kind}", wanted="a path, bytes or an object", where=where)
    return (layout or Layout()).medium(kind, value, where)


def exchange(row: Row, shown: MediaPart, question: str, answer: str) -> Conversation:
    """One medium, one question, one answer."""
    for said in (question, answer):
        refuse_half_characters(said, row.key.where)
    return Conversation(
        key=row.key,
        messages=(
            Message(role="user", parts=(shown, TextPart(text=question))),
            Message(role="assistant", parts=(TextPart(text=answer),)),
        ),
    )
