"""Media in a column that nobody reads, because it has an unusual name. Nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lading.conversation.formats import read_conversation
from lading.conversation.layout import Layout
from lading.errors import SkipSample
from lading.fields import MEDIA_KINDS
from lading.records import Row, SampleKey

PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\x00", b"MM\x00*")
"""How the files of pictures begin, and some of sounds."""


def unread_media(rows: Sequence[Mapping[str, Any]], layout: Layout) -> str | None:
    r"""The first column that holds media as data sets store them, where none of the rows' media are read.

    >>> row = {"question": "Who?", "answer": "Ada.", "picture": {"bytes": b"\x89PNG", "path": None}}
    >>> unread_media([row], Layout(format="question_answer"))
    'picture'
    >>> unread_media([row], Layout(format="question_answer", columns={"images": "picture"})) is None
    True
    """
    if any(_read(row, layout) for row in rows):
        return None
    return next((str(name) for row in rows for name, value in row.items() if _holds_media(value)), None)


def _read(row: Mapping[str, Any], layout: Layout) -> bool:
    if any(layout.media(row, kind) for kind in MEDIA_KINDS):
        return True
    try:
        return bool(read_conversation(Row(key=SampleKey(index=0, source="", where=""), value=row), layout).media)
    except SkipSample:
        return False


def _holds_media(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and _holds_media(value[0])
    if isinstance(value, bytes):
        return value.startswith(PICTURES)
    return isinstance(value, Mapping) and {"bytes", "path"} <= set(value) and bool(value["bytes"] or value["path"])
