"""Columns of a row that nobody reads, although they seem to matter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lading.conversation.layout import MEDIA_COLUMNS, MESSAGE_COLUMNS
from lading.doctor.checks.signatures import EXTENSIONS
from lading.doctor.kinds import Problem
from lading.doctor.reading import Read, shown
from lading.fields import MediaKind
from lading.media.content import HEAD, MEDIUM, content_of

USUAL: Mapping[str, MediaKind] = {name: kind for kind, names in MEDIA_COLUMNS.items() for name in names}
"""Columns that are read for media, if a format reads any."""


def unread(seen: Read) -> Iterator[Problem]:
    """A column of media, files or bytes, in a row that shows no medium of their kind.

    Where the row does show some, such a column is taken for a note (where a picture came from, say).
    """
    shows = {part.kind for part in seen.conversation.media}
    for name, value in seen.value.items():
        if name in MESSAGE_COLUMNS or name in seen.layout.columns.values():
            continue
        kind = _media_kind(value)
        if kind is not None and USUAL.get(name, kind) not in shows:
            yield Problem("unread_media_column", f"column {name!r} with {_described(value)}")


def _media_kind(value: Any) -> MediaKind | None:
    """What media a value names or holds, if it does."""
    kinds = {_kind_of_one(one) for one in (value if isinstance(value, (list, tuple)) else [value])}
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_one(value: Any) -> MediaKind | None:
    if isinstance(value, Mapping):
        # As `datasets` stores media.
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return MEDIUM.get(content_of(value[:HEAD]) or "")
    return _kind_of_name(value)


def _kind_of_name(name: Any) -> MediaKind | None:
    if not isinstance(name, str) or len(name) > 1000 or "\n" in name or "://" in name[:16]:
        return None
    _, dot, ending = name.rpartition(".")
    content = EXTENSIONS.get(ending.lower()) if dot else None
    return MEDIUM.get(content) if content is not None else None


def _described(value: Any) -> str:
    """The value, or what it is: bytes are for no eyes."""
    if isinstance(value, (list, tuple)) and not all(isinstance(one, str) for one in value):
        return f"{_described(value[0])} (and {len(value) - 1} more)" if len(value) > 1 else _described(value[0])
    if isinstance(value, Mapping):
        return _described(value.get("bytes") or value.get("path"))
    return f"{len(value):,} bytes of {content_of(value[:HEAD])}" if isinstance(value, bytes) else shown(str(value))
