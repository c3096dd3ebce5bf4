"""Content as a list of typed parts in place of a string, as OpenAI, Qwen and TRL write it.

{"type": "text", "text": "Who?"}
{"type": "image_url", "image_url": {"url": "ada.jpg"}}                  also video_url, audio_url; a data URL too
{"type": "input_audio", "input_audio": {"data": "UklGR…", "format": "wav"}}
{"type": "image", "image": "ada.jpg"}                                   also {"path": …}, {"bytes": …}, {"url": …}
{"type": "image"}                                                       the next one of the row's own list
{"type": "thinking", "thinking": "Hm."}                                 what was thought; also reasoning, and text
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lading.conversation.keys import unread_keys
from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import MediaPart, Part

SOUND = "input_audio"
TYPES: Mapping[str, MediaKind] = {
    **{kind: kind for kind in MEDIA_KINDS},
    **{f"{kind}_url": kind for kind in MEDIA_KINDS},
    SOUND: "audio",
}
"""Types of parts that show or play something."""
THOUGHTS = ("thinking", "reasoning")
"""Types of parts that say what was thought."""


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
    if kind not in TYPES:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a content part of type {kind!r}",
            wanted=f"text or one of {', '.join(TYPES)}",
            where=where,
        )
    shown = reference(part)
    frames = isinstance(shown, list) and "fps" in part
    return MediaPart(kind=TYPES[kind], reference=shown, options={"fps": part["fps"]} if frames else {})


def without_thoughts(content: Sequence[Any], where: str) -> tuple[list[Any], list[str]]:
    """The parts that say or show something, and the texts of those that say what was thought.

    >>> without_thoughts([{"type": "thinking", "thinking": "Hm."}, "Ada."], "w")
    (['Ada.'], ['Hm.'])
    """
    said, thoughts = [], []
    for part in content:
        if isinstance(part, Mapping) and part.get("type") in THOUGHTS:
            texts = [part[name] for name in (*THOUGHTS, "text", "content") if part.get(name) is not None]
            thoughts.append(_text(texts[0] if texts else None, where))
        else:
            said.append(part)
    return said, thoughts


def _text(text: Any, where: str) -> str:
    if not isinstance(text, str):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a text part with {type(text).__name__} for its text", wanted="a string", where=where
        )
    return text


def shows(part: Mapping[str, Any]) -> bool:
    """Whether a part is of a type that shows or plays something, whatever stands for its type.

    >>> shows({"type": "image"}), shows({"type": ["image"]}), shows({})
    (True, False, False)
    """
    kind = part.get("type")
    return isinstance(kind, str) and kind in TYPES


def reference(part: Mapping[str, Any]) -> Any:
    """The medium inside a part, as it is given; `None` where there is none.

    >>> reference({"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}})
    'data:audio/wav;base64,UklGRg=='
    """
    for name in (str(part["type"]), "path", "bytes", "url"):
        value = part.get(name)
        if isinstance(value, Mapping) and isinstance(value.get("data"), str):
            return f"data:audio/{value.get('format') or 'wav'};base64,{value['data']}"
        if value is not None:
            return value.get("url") if isinstance(value, Mapping) and "url" in value else value
    return None


def unread(part: Mapping[str, Any]) -> list[str]:
    """The keys of a part that nobody reads, those inside an `image_url` and its kin too.

    >>> unread({"type": "text", "text": "x", "image": "a.jpg"}), unread({"type": "image_url", "image_url": {"fps": 2}})
    (['content[].image'], ['content[].fps'])
    """
    kind = str(part.get("type"))
    inside = part.get(kind)
    if kind in TYPES:
        several = [name for name in (kind, "path", "bytes", "url") if part.get(name) is not None]
        read = {"type", *several[:1], *(("fps",) if isinstance(reference(part), list) else ())}
    else:
        read = {"type", "text", *((kind, "content") if kind in THOUGHTS else ())}
    found = [] if part.keys() <= read else list(unread_keys(part, read, "content[]."))
    if kind in TYPES and isinstance(inside, Mapping):
        found += unread_keys(inside, ("url", "path", "bytes", "data", "format"), "content[].")
    return found
