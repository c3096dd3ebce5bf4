"""What a command says besides its result: with -v more, with -q less, and always on the error stream."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from lading import toy
from lading.cli.app import COMMANDS, app
from tests.cli.test_commands import lading


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("faulty"), samples=20, faults=True)


def test_every_command_takes_both_options() -> None:
    for name in COMMANDS:
        shown = run(name, "--help").output
        assert "--verbose" in shown
        assert "--quiet" in shown


def run(*arguments: str | Path) -> Any:
    """In this process: what it takes to start one is not what is asked here."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "120"})


def test_more_and_less_is_said(faulty: Path) -> None:
    command = ("plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", "256")
    ways = {way: run(*way.split(), *command) for way in ("", "-vv", "-q")}
    ways |= {f"{way} behind": run(*command, way) for way in ("-vv", "-q")}
    for way, done in ways.items():
        assert done.exit_code == 0, done.output
        assert "straggler factors" in done.stdout, "the result is there all the same"
        assert ("no-such-picture.png" in done.stderr) is ("-q" not in way)
        assert ("DEBUG" in done.stderr and "filling packs took" in done.stderr) is ("-vv" in way)
        assert bool(done.stderr) is ("-q" not in way)


@pytest.mark.parametrize(
    "command", [("count",), ("plan", "--pack-size", "256"), ("inspect", "--terminal"), ("verify", "--pack-size", "256")]
)
def test_quiet_is_quiet(command: tuple[str, ...], tmp_path: Path) -> None:
    name, *more = command
    talks = toy.write_corpus(tmp_path, samples=4).parent / "talks.jsonl"
    asked = (name, talks, "--processor", "toy:qwen2_5_vl", *more)
    spoken, quiet = run(*asked), run(*asked, "-q")
    assert "talks: read as sharegpt" in spoken.stderr
    assert (quiet.exit_code, quiet.stderr) == (0, "")


@pytest.mark.parametrize("way", ["-q", ""])
def test_bars_of_datasets_are_not_shown_quietly_or_in_a_pipe(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that `datasets` reads, and writes into its cache with a bar of its own."""
    pytest.importorskip("datasets")
    talk = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "train.jsonl").write_text(json.dumps({"messages": talk}) + "\n", encoding="utf-8")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))
    done = lading("count", tmp_path / "set", "--processor", "toy:qwen2_5_vl", *way.split())
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / "cache").rglob("*.arrow")), "datasets was at work"
    assert "Generating" not in done.stderr
    assert way == "" or done.stderr == ""


def test_the_log_is_left_as_it_was() -> None:
    logger = logging.getLogger("lading")
    before = (logger.level, list(logger.handlers))
    assert run("families", "-vv").exit_code == 0
    assert (logger.level, list(logger.handlers)) == before


def test_errors_are_said_even_quietly() -> None:
    done = lading("plan", "gone.jsonl", "--processor", "toy:qwen2_5_vl", "--pack-size", "64", "-q")
    assert done.returncode == 2
    assert "gone.jsonl; wanted a JSONL file" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("command", "title"), [(["count"], "Lengths"), (["plan", "--pack-size", "256"], "Plan"), (["families"], "Families")]
)
def test_a_command_ends_with_one_table(faulty: Path, command: list[str], title: str) -> None:
    more = [] if command == ["families"] else [str(faulty), "--processor", "toy:qwen2_5_vl"]
    done = run(command[0], *more, *command[1:])
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[0].strip() == title
    assert done.stdout.count("┌") + done.stdout.count("┏") == 1
