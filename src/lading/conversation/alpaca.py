"""Alpaca rows: an instruction, perhaps an input, and the output, in columns of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def messages(row: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    r"""The row as messages, or `None` when it is no Alpaca row.

    >>> messages({"instruction": "Add.", "input": "1 2", "output": "3"})
    [{'role': 'user', 'content': 'Add.\n1 2'}, {'role': 'assistant', 'content': '3'}]
    """
    if not ("instruction" in row and "output" in row):
        return None
    system = [{"role": "system", "content": row["system"]}] if row.get("system") else []
    history = [
        {"role": role, "content": text}
        for question, answer in row.get("history") or []
        for role, text in (("user", question), ("assistant", answer))
    ]
    question = "\n".join(part for part in (row["instruction"], row.get("input")) if part)
    return [*system, *history, {"role": "user", "content": question}, {"role": "assistant", "content": row["output"]}]
