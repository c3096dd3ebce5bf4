"""Alpaca rows: an instruction, perhaps an input, and the output, in columns of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.errors import Reason, SkipSample


def messages(row: Mapping[str, Any], where: str) -> list[dict[str, Any]] | None:
    r"""The row as messages, or `None` when it is no Alpaca row.

    >>> messages({"instruction": "Add.", "input": "1 2", "output": "3"}, "d.json[0]")
    [{'role': 'user', 'content': 'Add.\n1 2'}, {'role': 'assistant', 'content': '3'}]
    """
    if row.get("instruction") is None or row.get("output") is None:
        return None
    texts = [row["instruction"], row.get("input") or "", row["output"], *_flat(row.get("history") or [], where)]
    if not all(isinstance(text, str) for text in texts):
        raise SkipSample(
            Reason.BAD_ROW, found="an instruction, input, output or history that is no text", wanted="text", where=where
        )
    instruction, extra, output, *history = texts
    question = "\n".join(part for part in (instruction, extra) if part)
    roles = ("user", "assistant")
    turns = [{"role": roles[place % 2], "content": text} for place, text in enumerate(history)]
    return [*turns, {"role": "user", "content": question}, {"role": "assistant", "content": output}]


def _flat(history: Any, where: str) -> list[Any]:
    pairs = isinstance(history, list) and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in history)
    if not pairs:
        raise SkipSample(
            Reason.BAD_ROW, found="a history that is no list of pairs", wanted="[[question, answer], …]", where=where
        )
    return [text for pair in history for text in pair]
