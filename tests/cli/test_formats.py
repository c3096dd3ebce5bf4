"""What commands say about formats, and what they are told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading.cli.app import app
from lading.errors import UnknownName

COUNT = ("--processor", "toy:qwen2_5_vl")


@pytest.fixture
def meta(tmp_path: Path) -> Path:
    talk = [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Ho"}]
    (tmp_path / "talks.json").write_text(
        json.dumps([{"conversations": talk, "instruction": "Hi", "output": "Ho!!!!!"}])
    )
    (tmp_path / "asked.json").write_text(json.dumps([{"question": "Hi", "answer": "Ho"}]))
    entries = {name: {"file_name": f"{name}.json"} for name in ("talks", "asked")}
    (tmp_path / "meta.json").write_text(json.dumps(entries))
    return tmp_path / "meta.json"


def run(*arguments: object) -> tuple[str, str]:
    done = CliRunner().invoke(app, [str(own) for own in arguments], env={"COLUMNS": "200"}, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout, done.stderr


@pytest.mark.parametrize("command", [("count",), ("plan", "--pack-size", 256), ("verify", "--pack-size", 256)])
def test_one_line_for_each_source(meta: Path, command: tuple[object, ...]) -> None:
    _, said = run(*command, meta, *COUNT)
    assert "talks: read as sharegpt (messages with marks in their text)" in said
    assert "asked: read as question_answer (a question and its answer)" in said


def test_format_and_data_set_are_as_asked(meta: Path) -> None:
    plain = json.loads(run("count", meta, *COUNT, "--json")[0])
    asked = json.loads(run("count", meta, *COUNT, "--json", "--dataset", "talks", "--format", "alpaca")[0])
    assert plain["formats"] == {"talks": "sharegpt", "asked": "question_answer"}
    assert asked["formats"] == {"talks": "alpaca"}
    # Lengths that were kept for the one must not be taken for the other.
    assert asked["sources"]["talks"]["tokens"] > plain["sources"]["talks"]["tokens"]


def test_unknown_names(meta: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'alpaca'"):
        run("count", meta, *COUNT, "--format", "alpacca")
    with pytest.raises(UnknownName, match="data set 'nobody'"):
        run("count", meta, *COUNT, "--dataset", "nobody")
    with pytest.raises(UnknownName, match="data set 'nobody'"):
        run("count", meta.parent / "talks.json", *COUNT, "--dataset", "nobody")
