"""UniMM-Chat: a picture and several turns about it, with `<image>` marks between the words."""

from __future__ import annotations

import base64
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.one_exchange import from_json
from lading.conversation.turns import read_turns
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

COLUMNS = ("image", "conversation")
MARK = "<image>"
WANTED = '[{"from": …, "value": …}, …]'
LONGEST_PATH = 4096
"""No operating system takes a longer path, so a longer text is the picture itself."""


def read(row: Row, layout: Layout | None = None) -> Conversation:
    """The turns of the row, each mark replaced by the picture.

    One picture stands at every mark, for all of them speak of it; of a list of pictures each mark takes the next.

    >>> from lading.records import SampleKey
    >>> turns = '[{"from": "human", "value": "Here: <image> Who?"}, {"from": "gpt", "value": "Ada."}]'
    >>> value = {"image": "ada.jpg", "conversation": turns}
    >>> talk = read(Row(key=SampleKey(index=0, source="unimm", where="unimm row 0"), value=value))
    >>> [type(part).__name__ for part in talk.messages[0].parts]
    ['TextPart', 'MediaPart', 'TextPart']
    """
    turns = _turns(row)
    given = row.value.get("image")
    if isinstance(given, (list, tuple)):
        pictures = [_picture(picture, row.key.where) for picture in given]
    else:
        picture = _picture(given, row.key.where)
        pictures = [] if picture is None else [picture] * max(1, _marks(turns))
    return read_turns(Row(key=row.key, value={"images": pictures}), layout or Layout(), messages=turns)


def _turns(row: Row) -> list[Any]:
    turns = row.value.get("conversation")
    if isinstance(turns, str):
        turns = from_json(row, "conversation", wanted=WANTED)
    if not isinstance(turns, list):
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a {type(turns).__name__} in column 'conversation'",
            wanted=WANTED,
            where=row.key.where,
        )
    return turns


def _marks(turns: list[Any]) -> int:
    return sum(str(turn.get("value", "")).count(MARK) for turn in turns if isinstance(turn, dict))


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
