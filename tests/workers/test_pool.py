"""Processes that do a job answer in order, hand on what went wrong, and end when the one that started them does."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lading.errors import ConfigError, CorpusError
from lading.workers.pool import START_METHOD, ProcessPool, StartMethod

METHODS: list[StartMethod] = ["fork", "spawn"]

PARENT = """
import os, sys, time
from pathlib import Path
from lading.workers.pool import ProcessPool

def job(number):
    (Path(sys.argv[2]) / str(os.getpid())).touch()
    time.sleep(0 if number == 0 else 600)  # what is begun takes longer than anybody waits
    return number

if __name__ == "__main__":
    with ProcessPool(job, 3, sys.argv[1]) as pool:
        for number in pool.map(range(9), 9):
            print(number, flush=True)
"""


def alive(process: int) -> bool:
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextmanager
def busy_parent(method: StartMethod, folder: Path) -> Iterator[tuple["subprocess.Popen[str]", list[int]]]:
    """A process that waits for three others, and their numbers."""
    (folder / "script.py").write_text(PARENT)
    seen = folder / "seen"
    seen.mkdir()
    command = [sys.executable, str(folder / "script.py"), method, str(seen)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "0\n"
        until = time.monotonic() + 60
        while len(list(seen.iterdir())) < 3 and time.monotonic() < until:
            time.sleep(0.05)
        children = [int(path.name) for path in seen.iterdir()]
        assert len(children) == 3
        assert all(map(alive, children))
        yield parent, children
        until = time.monotonic() + 30
        while any(map(alive, children)) and time.monotonic() < until:
            time.sleep(0.05)
        assert not any(map(alive, children))


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("method", METHODS)
def test_processes_end_with_a_parent_that_is_killed(method: StartMethod, tmp_path: Path) -> None:
    with busy_parent(method, tmp_path) as (parent, _):
        parent.kill()
        parent.wait()


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_ends_all_at_once_and_only_the_parent_tells_of_it(method: StartMethod, tmp_path: Path) -> None:
    with busy_parent(method, tmp_path) as (parent, _):
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does: to all of them
        _, said = parent.communicate(timeout=30)
        assert said.count("Traceback") == 1
        assert said.rstrip().endswith("KeyboardInterrupt")


HALF_SAID = """
from lading.workers.pool import ProcessPool

answer = bytes(30_000_000)  # takes so long to hand over that the end comes in the middle of it

for _ in range(5):
    with ProcessPool(lambda number: answer if number else b"", 2) as pool:
        next(answer for answer in pool.map(range(400), 400) if answer)
"""


@pytest.mark.slow
@pytest.mark.skipif(START_METHOD != "fork", reason="hands a lambda to the processes")
def test_an_answer_that_was_half_handed_over_is_not_waited_for() -> None:
    subprocess.run([sys.executable, "-c", HALF_SAID], check=True, timeout=90)


def answer_or_refuse(number: int) -> int:
    if number == 5:
        raise CorpusError(found="a five", wanted="another number", where="here")
    if number == 7:
        raise ZeroDivisionError("seven")
    return -number


@pytest.mark.parametrize("workers", [0, 2])
def test_answers_come_in_order_and_the_first_error_as_itself(workers: int) -> None:
    with ProcessPool(answer_or_refuse, workers) as pool:
        assert list(pool.map(range(5), 5)) == [0, -1, -2, -3, -4]
        found = []
        with pytest.raises(CorpusError, match=r"found a five; wanted another number \[here\]") as raised:
            found.extend(pool.map([1, 2, 5, 7], 4))
        assert raised.value.found == "a five"
        with pytest.raises(ZeroDivisionError, match="seven"):
            list(pool.map([1, 7, 5], 3))
        assert len(pool.processes()) == workers


def test_few_chunks_are_not_worth_a_process() -> None:
    with ProcessPool(answer_or_refuse, workers=2) as pool:
        assert list(pool.map([3], 1)) == [-3]
        assert pool.processes() == []


def test_what_cannot_be_sent_is_refused() -> None:
    with (
        ProcessPool(lambda number: number, 2, "spawn") as pool,
        pytest.raises(ConfigError, match="cannot be handed to another process"),
    ):
        list(pool.map(range(20), 20))


def settings_of_the_process(number: int) -> tuple[int, str, bool]:
    import torch

    os.write(1, b"a library says something")
    interrupt = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    return torch.get_num_threads(), os.environ["TOKENIZERS_PARALLELISM"], interrupt


def test_a_forked_process_uses_one_thread_and_prints_nothing_between_what_is_printed_for_programs(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with ProcessPool(settings_of_the_process, 2) as pool:
        assert set(pool.map(range(4), 4)) == {(1, "false", True)}
    assert "a library says something" not in capfd.readouterr().out
