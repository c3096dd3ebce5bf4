"""A person who knows only the README gets from their own files to a batch, in at most five lines."""

import re
from pathlib import Path
from typing import Any

import pytest

from lading import toy
from lading.records import Batch
from tests.docs.own_data import lay_out
from tests.support.shared import ROOT, real_processor

HEADING = "## From your own LLaVA-style JSON to a batch"


def code() -> str:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.split(HEADING + "\n", 1)[1].split("\n## ", 1)[0]
    (block,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    return str(block)


def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(folder)
    namespace: dict[str, Any] = {}
    exec(compile(code(), "README.md", "exec"), namespace)
    return namespace


def test_it_is_at_most_five_lines() -> None:
    assert 1 <= len([line for line in code().splitlines() if line.strip()]) <= 5


def test_from_their_own_files_to_a_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = lay_out(tmp_path)
    made = run(tmp_path, monkeypatch)
    batch = made["batch"]
    assert sum(len(documents) for documents in batch.rows) == rows
    assert made["loader"].ledger.total()["trained"] == rows
    assert float(toy.model("qwen2_5_vl")(**batch).loss) > 0


def test_with_a_real_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = lay_out(tmp_path, real_processor("qwen2_5_vl"))
    batch: Batch = run(tmp_path, monkeypatch)["batch"]
    assert sum(len(documents) for documents in batch.rows) == rows
    assert len(batch.tensor("image_grid_thw")) == rows - 1
