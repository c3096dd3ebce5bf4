"""Bars: on a terminal, and only there; on rank 0, and only there; for what takes long, and only then."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from lading import Loader, toy
from lading.lengths.annotate import write_annotated
from lading.plan import make_plan
from lading.progress import Advance, task, watched_by
from lading.records import LengthTable
from lading.sources import open_corpus
from tests.support.terminal import Done, on_a_terminal

WAIT = """
import sys, time
from lading.progress import Terminal, task, watched_by
with watched_by(Terminal()), task("waiting for it", 4) as advance:
    advance(3)
    time.sleep(float(sys.argv[1]))
"""
# The command as it is, but for how soon work is long: a fast machine is through with a small corpus before that.
AT_ONCE = "import lading.progress; lading.progress.DELAY = 0; "
COMMAND = AT_ONCE + "from lading.cli import main; main()"
LIBRARY = (
    AT_ONCE
    + """
import sys, lading
own = [{}, {"rank": 0, "world_size": 2}, {"progress": False}, {"rank": 1, "world_size": 2}]
for number, options in enumerate(own):
    if number:
        print("NEXT", file=sys.stderr, flush=True)
    lading.Loader(sys.argv[1], "toy:qwen2_5_vl", pack_size=256, cache=False, **options)
"""
)
FORKED = (
    AT_ONCE
    + """
import os, time
from lading.progress import Terminal, task, watched_by
with watched_by(Terminal()):
    child = os.fork()
    if not child:
        with task("of the child"):
            time.sleep(0.3)
        os._exit(0)
    os.waitpid(child, 0)
"""
)
HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"
"""What a bar does to the cursor when it begins, and when it ends."""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=120, faults=True)


def command(meta: Path, *more: str) -> list[str]:
    return ["-c", COMMAND, "count", str(meta), "--processor", "toy:qwen2_5_vl", "--again", *more]


def test_a_bar_begins_after_two_seconds_and_leaves_nothing_behind() -> None:
    done = on_a_terminal(["-c", WAIT, "2.7"])
    assert "waiting for it" in done.terminal
    assert "3 of 4" in done.terminal
    assert done.terminal.count(HIDE) == done.terminal.count(SHOW) == 1
    assert "\x1b[2K" in done.terminal.rsplit("waiting for it", 1)[1], "the line is cleared"


def test_what_is_done_before_that_shows_nothing() -> None:
    assert on_a_terminal(["-c", WAIT, "0.2"]) == Done(code=0, output="", terminal="")


def test_no_terminal_no_bar() -> None:
    done = subprocess.run([sys.executable, "-c", WAIT, "2.3"], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_command_shows_bars_on_a_terminal(meta: Path) -> None:
    done = on_a_terminal(command(meta, "--json"))
    assert done.code == 0
    assert "starting" in done.terminal
    assert "making the processor" in done.terminal
    assert "counting" in done.terminal
    assert done.output.startswith("{")
    assert "\x1b" not in done.output


def test_a_quiet_command_shows_none(meta: Path) -> None:
    done = on_a_terminal(command(meta, "-q"))
    assert (done.code, done.terminal) == (0, "")
    assert "Lengths" in done.output


def test_a_command_in_a_pipe_is_silent(meta: Path) -> None:
    done = subprocess.run(
        [sys.executable, *command(meta, "--json")], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stderr == ""


def test_a_library_shows_bars_on_rank_0_alone(meta: Path) -> None:
    said = on_a_terminal(["-c", LIBRARY, str(meta)])
    assert said.code == 0
    usual, first, unwanted, second = said.terminal.split("NEXT")
    assert "counting" in usual
    assert "counting" in first
    assert (unwanted.strip(), second.strip()) == ("", "")


def test_a_forked_process_leaves_the_terminal_alone() -> None:
    assert on_a_terminal(["-c", FORKED]) == Done(code=0, output="", terminal="")


class Notes:
    """A watcher that writes everything down."""

    def __init__(self) -> None:
        self.done: dict[str, list[int | None]] = {}

    @contextmanager
    def __call__(self, what: str, total: int | None, unit: str) -> Iterator[Advance]:
        far = 0

        def advance(more: int) -> None:
            nonlocal far
            far += more

        yield advance
        self.done[what] = [far, total]


def test_everything_long_says_how_far_it_is_and_ends_at_its_total(meta: Path, tmp_path: Path) -> None:
    lines = tmp_path / "large.jsonl"
    lines.write_text('{"text": "' + "x" * 1000 + '"}\n' * 1, encoding="utf-8")
    lines.write_bytes(lines.read_bytes() * 5000)
    notes = Notes()
    with watched_by(notes):
        open_corpus(lines, cache=False)
        loader = Loader(meta, "toy:qwen2_5_vl", pack_size=128, too_long="truncate", cache=False)
        write_annotated(loader.samples, loader.lengths, tmp_path / "copy")
        make_plan(LengthTable.of(tokens=np.full(3_000_000, 5, dtype=np.int32)), pack_size=10)
    assert notes.done["finding the rows of large.jsonl"] == [lines.stat().st_size] * 2
    assert notes.done["counting"] == [len(loader.samples)] * 2
    assert notes.done["filling packs"] == [3_000_000] * 2
    long = notes.done["cutting over-long samples"]
    assert long[0] == long[1]
    assert {"making the processor", "placing packs", "writing talks.jsonl"} <= set(notes.done)


def test_a_function_of_ones_own_is_told_instead(meta: Path) -> None:
    told: list[int] = []
    notes = Notes()
    with watched_by(notes):
        loader = Loader(meta, "toy:qwen2_5_vl", pack_size=256, cache=False, progress=told.append)
    assert sum(told) == len(loader.samples)
    assert notes.done == {}


def test_nobody_watches_and_all_is_well() -> None:
    with task("alone", 2) as advance:
        advance(1)
