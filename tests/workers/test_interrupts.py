"""Ctrl-C is met whenever it comes, in the middle of starting a process too."""

import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lading import toy
from lading.workers.interrupts import interrupts_afterwards

INTERRUPTED = """
import os, signal, sys

def interrupt():
    if {there}:
        print("interrupted", flush=True)
        os.kill(os.getpid(), signal.SIGINT)

# Who presses Ctrl-C during a fork is, as often as not, met in one of the hooks that Python runs around it.
os.register_at_fork({hook}=interrupt)
parent = os.getpid()
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may have it ignored
"""

COUNT = """
from lading.workers.pool import ProcessPool
with ProcessPool(abs, 2) as pool:
    print(sum(pool.map(range(9), 9)))
"""

TRAIN = """
from lading import Loader
for batch in Loader(sys.argv[1], "toy:qwen2_5_vl", pack_size=512, num_workers=2, progress=False):
    pass
print("trained")
"""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=10)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("work", [COUNT, TRAIN], ids=["count", "train"])
@pytest.mark.parametrize("hook", ["before", "after_in_parent", "after_in_child"])
def test_an_interrupt_during_a_fork_is_not_swallowed(work: str, hook: str, meta: Path) -> None:
    inside = hook == "after_in_child"  # a child that hears it leaves it to the parent, who is not interrupted here
    script = INTERRUPTED.format(hook=hook, there="os.getpid() != parent" if inside else "True") + work
    done = subprocess.run(
        [sys.executable, "-c", script, str(meta)], capture_output=True, text=True, check=False, timeout=120
    )
    assert "interrupted" in done.stdout + done.stderr
    assert "Exception ignored" not in done.stderr, done.stderr
    if inside:
        assert (done.returncode, done.stdout.split()[-1]) == (0, "36" if work == COUNT else "trained"), done.stderr
    else:
        assert done.returncode == -signal.SIGINT, done.stdout  # a shell says 130
        assert done.stderr.rstrip().endswith("KeyboardInterrupt")


def raised_behind(block: Callable[[], None]) -> bool:
    try:
        with interrupts_afterwards():
            block()
            finished = True
    except KeyboardInterrupt:
        return finished
    return False


def test_an_interrupt_is_raised_behind_the_block() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert raised_behind(lambda: signal.raise_signal(signal.SIGINT))
        assert not raised_behind(lambda: None)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        assert not raised_behind(lambda: signal.raise_signal(signal.SIGINT))
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_leaves_signals_alone() -> None:
    before, seen = signal.getsignal(signal.SIGINT), []

    def look() -> None:
        with interrupts_afterwards():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [before]
