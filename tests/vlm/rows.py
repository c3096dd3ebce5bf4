"""Small rows for the tests of the front door."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RATIOS = [0.3, 0.5, 1.0, 1.5, 2.0]


def numbered(count: int, start: int = 0) -> list[dict[str, Any]]:
    """ShareGPT rows that can be told apart."""
    return [
        {
            "conversations": [
                {"from": "human", "value": f"question {number}"},
                {"from": "gpt", "value": f"answer {number}"},
            ]
        }
        for number in range(start, start + count)
    ]


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_meta(folder: Path, **entries: Mapping[str, Any]) -> Path:
    path = folder / "meta.json"
    path.write_text(json.dumps(entries))
    return path


def said(example: Mapping[str, Any]) -> str:
    """What the assistant says in an example of one exchange."""
    text = example["conversation"][-1]["content"][0]["text"]
    assert isinstance(text, str)
    return text
