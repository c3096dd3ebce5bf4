"""The two ways to have another process: a copy of this one, or a new one.

A copy (`fork`) is there at once and has everything that was loaded; it is how `DataLoader` makes its workers. Where an
operating system does not make them, a plain child is started and told what to load, which takes seconds: what
`multiprocessing` spawns would run a user's script again. Either way, a child whose parent is gone reads the end of its
input, and ends.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, Literal, Protocol

from lading.errors import ConfigError
from lading.workers.watchdog import serve_only

Start = Literal["copy", "new"]
Answer = Callable[[Any, Any], object]
"""What a child makes of what it was given at the start, and of each question."""

USUAL: Start = "copy" if sys.platform == "linux" else "new"
COMMAND = "from lading.workers.child import serve; serve()"


class Child(Protocol):
    """Another process that answers questions, one after the other."""

    def ask(self, question: object) -> object:
        """Its answer. An `EOFError` or `OSError` means that it has ended."""

    def kill(self) -> None:
        """End it at once."""

    def ended(self) -> int:
        """Wait for its end: its exit code."""


class Copy:
    """A child that was forked."""

    def __init__(self, given: object, answer: Answer, others: list[Connection]) -> None:
        context = multiprocessing.get_context("fork")
        self._pipe, its_own = context.Pipe()
        others.append(self._pipe)
        # What belongs to the parent is closed in the child: else it would not notice that the parent is gone.
        self._process = context.Process(target=_live, args=(given, answer, its_own, others), daemon=True)
        self._process.start()
        its_own.close()

    def ask(self, question: object) -> object:
        """By its pipe."""
        self._pipe.send(question)
        return self._pipe.recv()

    def kill(self) -> None:
        """And close what was open to it."""
        self._process.kill()
        self._process.join()
        self._pipe.close()

    def ended(self) -> int:
        """Its exit code."""
        self._process.join()
        return int(self._process.exitcode or 0)


class New:
    """A child that was started, and sent what it is to know; the first question waits until it has loaded that."""

    def __init__(self, parcel: bytes) -> None:
        quiet = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._parcel: bytes | None = parcel

    def ask(self, question: object) -> object:
        """By its input and output."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if self._parcel is not None:
            self._process.stdin.write(self._parcel)
            self._parcel = None
        self._process.stdin.write(pickle.dumps(question))
        self._process.stdin.flush()
        return pickle.load(self._process.stdout)

    def kill(self) -> None:
        """And close what was open to it."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def ended(self) -> int:
        """Its exit code."""
        return self._process.wait()


def start(given: object, answer: Answer, number: int, how: Start = USUAL) -> list[Child]:
    """So many children that know what was given."""
    if how == "copy":
        others: list[Connection] = []
        return [Copy(given, answer, others) for _ in range(number)]
    try:
        parcel = pickle.dumps((given, answer))
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise ConfigError(
            found=f"a corpus or processor that cannot be handed to another process ({error})",
            wanted="one that can be pickled, or workers=0",
        ) from error
    return [New(parcel) for _ in range(number)]


GONE = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a child meets whose parent is no more: while it reads, or while it answers."""


def _live(given: object, answer: Answer, pipe: Connection, others: list[Connection]) -> None:
    """The life of a copy."""
    import torch

    for other in others:
        other.close()
    # What is here already is shared with the parent: the collector would touch, and so copy, all of it. And a copied
    # process has no threads but this one; torch would wait for others.
    gc.freeze()
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    _settle()
    with suppress(*GONE):
        while True:
            pipe.send(answer(given, pipe.recv()))


def serve() -> None:
    """The life of a new one."""
    answers = os.fdopen(os.dup(1), "wb")
    _settle()
    given, answer = pickle.load(sys.stdin.buffer)
    with suppress(*GONE):
        while True:
            pickle.dump(answer(given, pickle.load(sys.stdin.buffer)), answers)
            answers.flush()


def _settle() -> None:
    # What a library prints must not come between the answers; and who interrupts the parent interrupts no answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_only()
    os.dup2(2, 1)
