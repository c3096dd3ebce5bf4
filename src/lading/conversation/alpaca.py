"""Alpaca: an instruction, perhaps an input, and the output, in columns of their own.

    {"instruction": "Who is this?", "input": "<image>", "output": "Ada.", "images": ["ada.jpg"],
     "system": "Be brief.", "history": [["Hello!", "Hi."]]}

The columns may have other names: `prompt`, `query`, `response`, `history` and `system` say which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.turns import read_turns
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

NEEDED = {"prompt": "instruction", "response": "output"}


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from being Alpaca's.

    >>> lacks({"instruction": "Add."}, Layout())
    ("a column 'output'",)
    """
    names = [layout.column(name, usual) for name, usual in NEEDED.items()]
    return tuple(f"a column {name!r}" for name in names if row.get(name) is None)


def read(row: Row, layout: Layout) -> Conversation:
    return read_turns(row, layout.untagged, messages=messages(row.value, layout, row.key.where))


def messages(row: Mapping[str, Any], layout: Layout, where: str) -> list[dict[str, Any]]:
    r"""The row as messages.

    >>> messages({"instruction": "Add.", "input": "1 2", "output": "3"}, Layout(), "d.json[0]")
    [{'role': 'user', 'content': 'Add.\n1 2'}, {'role': 'assistant', 'content': '3'}]
    """
    if missing := lacks(row, layout):
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"no {' and no '.join(name.removeprefix('a ') for name in missing)} among {', '.join(map(str, row))}",
            wanted="an instruction and an output",
            where=where,
        )
    asked, answered = (row[layout.column(name, usual)] for name, usual in NEEDED.items())
    history = row.get(layout.column("history")) or []
    texts = [asked, row.get(layout.column("query", "input")) or "", answered, *_flat(history, where)]
    if not all(isinstance(text, str) for text in texts):
        raise SkipSample(
            Reason.BAD_ROW, found="an instruction, input, output or history that is no text", wanted="text", where=where
        )
    instruction, extra, output, *before = texts
    question = "\n".join(part for part in (instruction, extra) if part)
    roles = ("user", "assistant")
    turns = [{"role": roles[place % 2], "content": text} for place, text in enumerate(before)]
    return [*turns, {"role": "user", "content": question}, {"role": "assistant", "content": output}]


def _flat(history: Any, where: str) -> list[Any]:
    pairs = isinstance(history, list) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in history)
    if not pairs:
        raise SkipSample(
            Reason.BAD_ROW, found="a history that is no list of pairs", wanted="[[question, answer], …]", where=where
        )
    return [text for pair in history for text in pair]
