"""Processes that work for this one.

They are plain children that talk through pipes: a forked process would inherit the threads of a tokenizer half-way
through something, and one that `multiprocessing` spawns would run a user's script again. A child whose parent is gone
reads the end of its input, and ends.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, Generic, Self, TypeVar, cast

from lading.errors import ConfigError, CorpusError, LadingError
from lading.loader.watchdog import serve_only

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")

AHEAD = 4
"""Chunks that wait for each process."""
WORTH_IT = 8
"""Chunks from which on other processes are started: to load what they need takes seconds."""
COMMAND = "from lading.loader.helpers import serve; serve()"


class Helpers(Generic[Chunk, Answer]):
    """So many processes that do a job: this one, and others, which join in as soon as they have loaded what they need.

    The job is a callable that can be pickled; each process calls it with one chunk at a time.
    """

    def __init__(self, job: Callable[[Chunk], Answer], workers: int) -> None:
        self.job, self.others = job, max(0, workers - 1)
        self.asked = 0
        """Chunks that were handed to other processes."""
        self._children: list[subprocess.Popen[bytes]] = []
        self._threads = ThreadPoolExecutor(max_workers=max(1, self.others))
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._places = Semaphore(0)
        self._greetings: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            child.kill()
            child.wait()
        self._threads.shutdown(cancel_futures=True)
        for child in self._children:
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    with suppress(BrokenPipeError):
                        pipe.close()

    def each(self, chunks: Iterable[Chunk], number: int) -> Iterator[Answer]:
        """What the job makes of so many chunks, in their order, whoever does it."""
        if self.others and number >= WORTH_IT:
            self.start()
        waiting: deque[Future[Answer]] = deque()
        for chunk in chunks:
            if self._places.acquire(blocking=False):
                waiting.append(self._threads.submit(self._ask, chunk))
                self.asked += 1
            else:
                waiting.append(self._done(chunk))
            while waiting and waiting[0].done():
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        for greeting in self._greetings:
            if greeting.done():
                greeting.result()

    def start(self) -> None:
        """Start the others, if they are not started yet. They are not waited for."""
        if self._children:
            return
        try:
            parcel = pickle.dumps(self.job)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ConfigError(
                found=f"a corpus or processor that cannot be handed to another process ({error})",
                wanted="one that can be pickled, or workers=0",
            ) from error
        quiet = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for _ in range(self.others):
            child = subprocess.Popen(
                [sys.executable, "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._children.append(child)
            self._greetings.append(self._threads.submit(self._greet, child, parcel))

    def wait(self) -> None:
        """Wait until all of the others are ready."""
        for greeting in self._greetings:
            greeting.result()

    def _done(self, chunk: Chunk) -> Future[Answer]:
        """A chunk done here. Its error waits for its turn: whoever works, the first one is raised."""
        future: Future[Answer] = Future()
        try:
            future.set_result(self.job(chunk))
        except LadingError as error:
            future.set_exception(error)
        return future

    def _greet(self, child: subprocess.Popen[bytes], parcel: bytes) -> None:
        _tell(child, parcel)
        self._idle.put(child)
        self._places.release(AHEAD)

    def _ask(self, chunk: Chunk) -> Answer:
        child = self._idle.get()
        try:
            answer = _tell(child, pickle.dumps(chunk))
        finally:
            self._idle.put(child)
            self._places.release()
        if isinstance(answer, LadingError):
            raise answer
        return cast("Answer", answer)


def _tell(child: subprocess.Popen[bytes], parcel: bytes) -> object:
    """Hand something to a child, and wait for its answer."""
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        child.stdin.write(parcel)
        child.stdin.flush()
        answer: object = pickle.load(child.stdout)
    except (EOFError, BrokenPipeError) as error:
        raise CorpusError(
            found=f"a helping process that ended by itself (exit code {child.wait()})",
            wanted="its answer",
            consequence="what was kept so far stays; with workers=0 this process does it all",
        ) from error
    return answer


def serve() -> None:
    """A helper's life: a job, then chunks for it, until the input ends."""
    # What a library prints must not come between the answers; and who interrupts the parent interrupts no answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_only()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    job = pickle.load(sys.stdin.buffer)
    answer: object = "ready"
    while True:
        pickle.dump(answer, answers)
        answers.flush()
        try:
            chunk = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer = _answer(job, chunk)


def _answer(job: Callable[[Any], object], chunk: Any) -> object:
    try:
        return job(chunk)
    except LadingError as error:
        return error
