"""Well-known data sets, each by its name: CORD-v2, CommonVoice 17, MedPix, RDR items, UniMM-Chat.

All but the last are one medium, one question and one answer.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from lading.conversation.extras import refuse_half_characters
from lading.conversation.layout import Layout
from lading.conversation.turns import read_turns
from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import Conversation, MediaPart, Message, Row, TextPart

CORD_V2 = ("image", "ground_truth")
CV17 = ("audio", "transcription")
MEDPIX = ("image_id", "question", "answer")
RDR = ("image", "text")
UNIMM_CHAT = ("image", "conversation")
"""The columns of each."""
DESCRIBE = "Describe this image."
TRANSCRIBE = "Transcribe this recording."
SEPARATOR = "<sep/>"
TEXT_ALONE = "text_sequence"
"""An object of CORD-v2 with this key alone stands for plain text."""
MARK = "<image>"
WANTED = '[{"from": …, "value": …}, …]'
LONGEST_PATH = 4096
"""No operating system takes a longer path, so a longer text is the picture itself."""


def cord_v2(row: Row, layout: Layout | None = None, *, prompt: str = DESCRIBE, seed: int = 0) -> Conversation:
    """A receipt and the prompt, answered by its contents (JSON) as token text, which the model learns to write.

    Of several `gt_parses` one is taken: which one is a function of the seed and the sample's number, so that every
    rank, worker and resumed run takes the same.

    >>> from lading.records import SampleKey
    >>> value = {"image": "r.png", "ground_truth": '{"gt_parse": {"total": "3", "menu": ["tea", "pie"]}}'}
    >>> cord_v2(Row(key=SampleKey(index=0, source="cord", where="cord row 0"), value=value)).messages[1].parts[0].text
    '<s_total>3</s_total><s_menu>tea<sep/>pie</s_menu>'
    """
    parses = _parses(row)
    number = int(np.random.default_rng([seed, row.key.index]).integers(len(parses)))
    return _exchange(row, _medium(row, "image", "image", layout), prompt, token_text(parses[number]))


def cv17(row: Row, layout: Layout | None = None, *, prompt: str = TRANSCRIBE) -> Conversation:
    """A recording and the prompt, answered by the transcription.

    >>> from lading.records import SampleKey
    >>> value = {"audio": {"bytes": None, "path": "a.wav"}, "transcription": "Merhaba."}
    >>> cv17(Row(key=SampleKey(index=0, source="cv17", where="cv17 row 0"), value=value)).media[0].kind
    'audio'
    """
    return _exchange(row, _medium(row, "audio", "audio", layout), prompt, _text(row, "transcription"))


def medpix(row: Row, layout: Layout | None = None) -> Conversation:
    """A medical picture (in `image_id`) and the row's question, answered by the row's answer."""
    return _exchange(row, _medium(row, "image_id", "image", layout), _text(row, "question"), _text(row, "answer"))


def rdr(row: Row, layout: Layout | None = None, *, prompt: str = DESCRIBE) -> Conversation:
    """A picture and the prompt, answered by the row's text."""
    return _exchange(row, _medium(row, "image", "image", layout), prompt, _text(row, "text"))


def unimm_chat(row: Row, layout: Layout | None = None) -> Conversation:
    """A picture and several turns about it, each mark between the words replaced by the picture.

    One picture stands at every mark, for all of them speak of it; of a list of pictures each mark takes the next.

    >>> from lading.records import SampleKey
    >>> turns = '[{"from": "human", "value": "Here: <image> Who?"}, {"from": "gpt", "value": "Ada."}]'
    >>> row = Row(key=SampleKey(index=0, source="s", where="row 0"), value={"image": "a.jpg", "conversation": turns})
    >>> [type(part).__name__ for part in unimm_chat(row).messages[0].parts]
    ['TextPart', 'MediaPart', 'TextPart']
    """
    turns = _turns(row)
    given = row.value.get("image")
    if isinstance(given, (list, tuple)):
        pictures = [_picture(picture, row.key.where) for picture in given]
    else:
        picture = _picture(given, row.key.where)
        marks = sum(str(turn.get("value", "")).count(MARK) for turn in turns if isinstance(turn, dict))
        pictures = [] if picture is None else [picture] * max(1, marks)
    return read_turns(Row(key=row.key, value={"images": pictures}), layout or Layout(), messages=turns)


def token_text(value: Any) -> str:
    """JSON as token text: keys in reverse order as `<s_key>…</s_key>`, a list's items with `<sep/>` between.

    >>> token_text({"a": 1, "b": [{"c": "x"}, {"c": "y"}]})
    '<s_b><s_c>x</s_c><sep/><s_c>y</s_c></s_b><s_a>1</s_a>'
    """
    if isinstance(value, Mapping):
        if set(value) == {TEXT_ALONE}:
            return str(value[TEXT_ALONE])
        return "".join(f"<s_{key}>{token_text(value[key])}</s_{key}>" for key in sorted(value, reverse=True))
    if isinstance(value, list):
        return SEPARATOR.join(token_text(item) for item in value)
    return str(value)


def _parses(row: Row) -> list[Any]:
    truth = _from_json(row, "ground_truth", wanted='{"gt_parse": …} or {"gt_parses": […]}')
    several = truth.get("gt_parses") if isinstance(truth, dict) else None
    if isinstance(several, list) and several:
        return several
    if isinstance(truth, dict) and "gt_parse" in truth:
        return [truth["gt_parse"]]
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"ground truth with {', '.join(truth) if isinstance(truth, dict) else 'no keys'}",
        wanted="gt_parse, or gt_parses with at least one parse",
        where=row.key.where,
    )


def _turns(row: Row) -> list[Any]:
    turns = row.value.get("conversation")
    if isinstance(turns, str):
        turns = _from_json(row, "conversation", wanted=WANTED)
    if not isinstance(turns, list):
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a {type(turns).__name__} in column 'conversation'",
            wanted=WANTED,
            where=row.key.where,
        )
    return turns


def _picture(value: Any, where: str) -> Any:
    """A picture as a row gives it; one written out as base64 text becomes bytes."""
    if not isinstance(value, str) or value.startswith("data:") or len(value) <= LONGEST_PATH:
        return value or None
    try:
        return base64.b64decode(value, validate=True)
    except ValueError as error:
        raise SkipSample(
            Reason.CORRUPT_MEDIA,
            found=f"a picture as {len(value)} characters of text that is not base64 ({error})",
            wanted="a path, bytes, an object or base64",
            where=where,
        ) from error


def _text(row: Row, column: str) -> str:
    """The text of a column.

    >>> from lading.records import SampleKey
    >>> _text(Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"text": None}), "text")
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


def _from_json(row: Row, column: str, wanted: str) -> Any:
    """What the text of a column says as JSON.

    >>> from lading.records import SampleKey
    >>> _from_json(Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"a": "["}), "a", wanted="a list")
    Traceback (most recent call last):
        ...
    lading.errors.SkipSample: found malformed JSON in column 'a' (Expecting value at 1); wanted a list [s row 0]
    """
    try:
        return json.loads(_text(row, column))
    except (ValueError, RecursionError) as error:
        # Nested too deeply, or a number of too many digits: these have no place.
        detail = f"{error.msg} at {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise SkipSample(
            Reason.MALFORMED_JSON,
            found=f"malformed JSON in column {column!r} ({detail})",
            wanted=wanted,
            where=row.key.where,
        ) from error


def _medium(row: Row, column: str, kind: MediaKind, layout: Layout | None = None) -> MediaPart:
    """The medium of a column: a path, bytes, a decoded object, or `{"bytes": …, "path": …}` with extras.

    >>> from lading.records import SampleKey
    >>> row = Row(key=SampleKey(index=0, source="s", where="s row 0"), value={"image": {"path": "a.jpg"}})
    >>> _medium(row, "image", "image").reference
    'a.jpg'
    """
    value = row.value.get(column)
    where = f"{row.key.where}, column {column!r}"
    empty = isinstance(value, Mapping) and not (value.get("bytes") or value.get("path"))
    if value is None or empty or value in ("", b""):
        raise SkipSample(Reason.MISSING_MEDIA, found=f"no {kind}", wanted="a path, bytes or an object", where=where)
    return (layout or Layout()).medium(kind, value, where)


def _exchange(row: Row, shown: MediaPart, question: str, answer: str) -> Conversation:
    """One medium, one question, one answer."""
    for text in (question, answer):
        refuse_half_characters(text, row.key.where)
    return Conversation(
        key=row.key,
        messages=(
            Message(role="user", parts=(shown, TextPart(text=question))),
            Message(role="assistant", parts=(TextPart(text=answer),)),
        ),
    )
