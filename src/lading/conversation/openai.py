"""OpenAI-style content: a list of typed parts in place of a string."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import MediaPart, Part

_TYPES: Mapping[str, MediaKind] = {
    **{kind: kind for kind in MEDIA_KINDS},
    **{f"{kind}_url": kind for kind in MEDIA_KINDS},
}


def pieces(content: Sequence[Any], where: str) -> list[str | Part]:
    """Text as strings, media as parts; a media part without a reference means the next one of the row's list.

    >>> pieces([{"type": "text", "text": "hi"}, {"type": "image", "image": "a.jpg"}], "w")
    ['hi', MediaPart(kind='image', reference='a.jpg', options={})]
    """
    return [_piece(part, where) for part in content]


def _piece(part: Any, where: str) -> str | Part:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping) or "type" not in part:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a content part as a {type(part).__name__} without a type",
            wanted='{"type": "text", …}',
            where=where,
        )
    kind = str(part["type"])
    if kind == "text":
        return _text(part.get("text"), where)
    if kind not in _TYPES:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a content part of type {kind!r}",
            wanted=f"text or one of {', '.join(_TYPES)}",
            where=where,
        )
    return MediaPart(kind=_TYPES[kind], reference=_reference(part, kind))


def _text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a text part with {type(text).__name__} for its text", wanted="a string", where=where
        )
    return text


def _reference(part: Mapping[str, Any], kind: str) -> Any:
    for name in (kind, "path", "bytes", "url"):
        value = part.get(name)
        if value is not None:
            return value.get("url") if isinstance(value, Mapping) and "url" in value else value
    return None
