"""What is printed where nobody looks: whole lines, whole paths, and the time that really passed."""

import inspect
import json
import platform
import re
import time
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import lading as library
from lading import toy
from lading.cli.app import COMMANDS
from tests.cli.test_commands import lading


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A corpus in a folder of a long name, longer than 80 columns."""
    folder = tmp_path_factory.mktemp("deep") / ("a-long-name-" * 8)
    return toy.write_corpus(folder, samples=6, faults=True)


def test_the_version_and_those_it_depends_on() -> None:
    done = lading("--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        f"lading {library.__version__}",
        f"python {platform.python_version()}",
        f"torch {version('torch')}",
        f"transformers {version('transformers')}",
    ]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    assert COMMANDS[name] == inspect.getdoc(import_module(f"lading.cli.{name}").__dict__[name])


def test_no_line_is_wrapped_in_a_pipe(deep: Path) -> None:
    """One run of the real command: its paths are whole on both streams, and its time is the one that passed."""
    before = time.monotonic()
    done = lading("count", deep, "--processor", "toy:qwen2_5_vl", "--out", deep.parent / "kept", "-v")
    passed = time.monotonic() - before
    assert done.returncode == 0, done.stderr
    assert f"kept in {deep.parent / 'kept'}" in done.stdout.splitlines()
    assert any(str(deep.parent) in line and "no-such-picture.png" in line for line in done.stderr.splitlines())
    assert max(map(len, done.stdout.splitlines())) < 1000, "no line is filled up to a width that nothing has"
    (took,) = re.findall(r"took ([0-9.]+) s", done.stdout)
    # Less only by the end of the process, which comes after the line.
    assert 0.5 * passed < float(took) <= passed + 0.05


def test_an_error_is_one_line_in_a_pipe(deep: Path) -> None:
    missing = deep.with_name("missing.jsonl")
    done = lading("count", missing, "--processor", "toy:qwen2_5_vl")
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert str(missing) in done.stderr


def test_tokens_in_a_pipe_have_short_rules(deep: Path) -> None:
    done = lading("inspect", deep, "--processor", "toy:qwen2_5_vl", "--terminal", "-q")
    assert done.returncode == 0, done.stderr
    rules = [line for line in done.stdout.splitlines() if "─" in line]
    assert rules
    assert max(map(len, rules)) < 1000


def test_json_of_the_demo_says_the_time_that_passed(tmp_path: Path) -> None:
    before = time.monotonic()
    done = lading("demo", "--out", tmp_path, "--samples", "10", "--epochs", "1", "--json")
    passed = time.monotonic() - before
    assert done.returncode == 0, done.stderr
    assert 0.5 * passed < json.loads(done.stdout)["seconds"] <= passed
