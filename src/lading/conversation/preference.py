"""Preference rows: one question with an answer that was chosen, and one that was rejected.

    {"chosen": [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}], "rejected": […]}
    {"prompt": "Who?", "chosen": "Ada.", "rejected": "Bob."}                      the prompt as messages, too (TRL)
    {"conversations": [{"from": "human", "value": "Who?"}], "chosen": {"from": "gpt", "value": "Ada."},
     "rejected": {"from": "gpt", "value": "Bob."}}                                (LLaMA-Factory)

Which of the two is better cannot be trained on by a loss over tokens: with `preference="chosen"` the chosen answer is
trained on, as if it had come alone; else such rows are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.turns import MEDIA_FIRST, USUAL, as_list, read_turns
from lading.errors import ConfigError, Reason, SkipSample
from lading.records import Conversation, Row

COLUMNS = ("chosen", "rejected")


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from being a preference.

    >>> lacks({"prompt": "Who?", "chosen": "Ada."}, Layout())
    ("a column 'rejected'",)
    """
    return tuple(f"a column {name!r}" for name in map(layout.column, COLUMNS) if row.get(name) is None)


def read(row: Row, layout: Layout) -> Conversation:
    """The conversation that ends with the chosen answer."""
    if layout.reading.preference != "chosen":
        raise ConfigError(
            found="preference rows: a chosen and a rejected answer",
            wanted='preference="chosen" (--preference chosen), which trains on the chosen answer',
            consequence="a loss over tokens cannot say which of two answers is better; nothing was counted",
            where=row.key.where,
        )
    messages = _messages(row, layout.column("chosen"), "assistant")
    marked = layout.has_messages(row.value)
    if not any(_asks(message, layout) for message in messages):  # else the whole conversation is there
        messages = [*_before(row, layout), *messages]
    if not any(_asks(message, layout) for message in messages):
        raise SkipSample(
            Reason.BAD_ROW,
            found="a chosen answer without its question",
            wanted="a `prompt`, or messages that end with the question",
            where=row.key.where,
        )
    return read_turns(row, layout, messages=messages, turn_format=USUAL if marked else MEDIA_FIRST)


def _asks(message: Any, layout: Layout) -> bool:
    return isinstance(message, Mapping) and layout.role(message, "") == "user"


def _before(row: Row, layout: Layout) -> list[Any]:
    if layout.has_messages(row.value):
        before = list(as_list(layout.messages(row.value, row.key.where)) or ())
        # Some keep the chosen answer in both places.
        while before and not _asks(before[-1], layout):
            before.pop()
        return before
    return _messages(row, layout.column("prompt"), "user")


def _messages(row: Row, column: str, role: str) -> list[Any]:
    value = row.value.get(column)
    if value is None:
        return []
    if isinstance(value, Mapping) and not isinstance(next(iter(value.values()), None), list):
        return [value]
    listed = as_list(value)
    if listed is not None:
        return list(listed)
    if isinstance(value, str):
        return [{"role": role, "content": value}]
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"a {type(value).__name__} in column {column!r}",
        wanted="text, a message, or a list of messages",
        where=row.key.where,
    )
