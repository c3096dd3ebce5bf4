"""Columns of a row that nobody reads, although they seem to matter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lading.conversation.layout import MEDIA_COLUMNS, MESSAGE_COLUMNS
from lading.doctor.checks.signatures import EXTENSIONS, MEDIUM
from lading.doctor.kinds import Problem
from lading.doctor.reading import Read, shown
from lading.fields import MediaKind


def unread(seen: Read) -> Iterator[Problem]:
    """A column of media files in a row that shows no medium of their kind.

    Where the row does show some, such a column is taken for a note (where a picture came from, say).
    """
    shows = {part.kind for part in seen.conversation.media}
    known = {*MESSAGE_COLUMNS, *(name for names in MEDIA_COLUMNS.values() for name in names)}
    for name, value in seen.value.items():
        kind = _media_kind(value)
        if kind is not None and kind not in shows and name not in known and name not in seen.layout.columns.values():
            yield Problem("unread_media_column", f"column {name!r} with {shown(str(value))}")


def _media_kind(value: Any) -> MediaKind | None:
    """What files a value names, if it names any."""
    names = value if isinstance(value, list) else [value]
    kinds = {_kind_of_name(name) for name in names}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_name(name: Any) -> MediaKind | None:
    if not isinstance(name, str) or len(name) > 1000 or "\n" in name or "://" in name[:16]:
        return None
    _, dot, ending = name.rpartition(".")
    content = EXTENSIONS.get(ending.lower()) if dot else None
    return MEDIUM.get(content) if content is not None else None
