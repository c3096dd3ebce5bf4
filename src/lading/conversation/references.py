"""A medium as a row gives it → a `MediaPart`. Nothing is opened."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lading.conversation.layout import Layout
from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import MediaPart


def read_medium(kind: MediaKind, value: Any, layout: Layout, where: str) -> MediaPart:
    """A medium as a row gives it: a path, bytes, an object, a list of frames, or a mapping of these with extras."""
    options: dict[str, Any] = {}
    if isinstance(value, Mapping) and "array" in value:
        return MediaPart(kind=kind, reference=value)  # a sound that `datasets` decoded already
    if isinstance(value, Mapping):
        options = {key: extra for key, extra in value.items() if key not in ("path", "bytes")}
        value = value.get("bytes") or value.get("path")
    if value is None:
        raise SkipSample(Reason.BAD_ROW, found=f"{kind} without a path or bytes", wanted="one of them", where=where)
    if isinstance(value, (list, tuple)):
        value = tuple(_resolve(part, layout, where) for part in value)
    else:
        value = _resolve(value, layout, where)
    return MediaPart(kind=kind, reference=value, options=options, roots=layout.media_roots)


def _resolve(value: Any, layout: Layout, where: str) -> Any:
    """A path against the media folder; a data URL, an address and everything else as they are."""
    if not isinstance(value, str):
        return value
    if not value:
        raise SkipSample(Reason.BAD_ROW, found="an empty path for a medium", wanted="a file name", where=where)
    if value.startswith("data:"):
        return value
    if value.startswith("file://"):
        value = value.removeprefix("file://")
    if "://" in value[:16] or layout.media_dir is None:
        return value
    return str(layout.media_dir / Path(value))
