"""A question and its answer in columns of their own, pictures beside them: what most sets of visual questions are.

    {"image": {"bytes": b"…", "path": "ada.png"}, "question": "Who is this?", "answer": "Ada."}

The pictures go before the question, unless marks in it give them their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.turns import MEDIA_FIRST, read_turns
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

SIDES = {"question": "user", "answer": "assistant"}


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from being a question and an answer.

    >>> lacks({"question": "Who?", "answers": ["Ada."]}, Layout())
    ("text in column 'answer'",)
    """
    names = [layout.column(side) for side in SIDES]
    return tuple(f"text in column {name!r}" for name in names if not isinstance(row.get(name), str))


def read(row: Row, layout: Layout) -> Conversation:
    if missing := lacks(row.value, layout):
        columns = ", ".join(map(str, row.value))
        raise SkipSample(Reason.BAD_ROW, found=f"columns {columns}", wanted=" and ".join(missing), where=row.key.where)
    messages = [{"role": role, "content": row.value[layout.column(side)]} for side, role in SIDES.items()]
    return read_turns(row, layout.untagged, messages=messages, turn_format=MEDIA_FIRST)
