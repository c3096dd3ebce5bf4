"""The Cauldron, FineVision: questions and answers in pairs, pictures in a column beside them.

    {"images": [{"bytes": b"…", "path": None}],
     "texts": [{"user": "Who is this?", "assistant": "Ada."}, {"user": "Since when?", "assistant": "1815."}]}

The pictures go before the first question, unless marks in the text give them their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.turns import MEDIA_FIRST, as_list, read_turns
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

COLUMN = "texts"
SIDES = ("user", "assistant")


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from being pairs.

    >>> lacks({"texts": ["Who?"]}, Layout())
    ("a user and an assistant in every pair of 'texts'",)
    """
    column = layout.column(COLUMN)
    if row.get(column) is None:
        return (f"a column {column!r}",)
    return () if _pairs(row, column) else (f"a user and an assistant in every pair of {column!r}",)


def read(row: Row, layout: Layout) -> Conversation:
    if missing := lacks(row.value, layout):
        columns = ", ".join(map(str, row.value))
        raise SkipSample(Reason.BAD_ROW, found=f"columns {columns}", wanted=missing[0], where=row.key.where)
    pairs = _pairs(row.value, layout.column(COLUMN))
    messages = [{"role": side, "content": pair[side]} for pair in pairs for side in SIDES]
    return read_turns(row, layout.untagged, messages=messages, turn_format=MEDIA_FIRST)


def _pairs(row: Mapping[str, Any], column: str) -> list[Mapping[str, Any]]:
    """The pairs of a row; none where one of them is no pair."""
    pairs = [pair for pair in as_list(row[column]) or () if isinstance(pair, Mapping)]
    whole = all(isinstance(pair.get(side), str) for pair in pairs for side in SIDES)
    return pairs if whole and len(pairs) == len(as_list(row[column]) or ()) else []
