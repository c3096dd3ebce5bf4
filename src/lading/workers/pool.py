"""Processes that work along with this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Semaphore
from typing import Any, Generic, Self, TypeVar, cast

from lading.errors import CorpusError, LadingError
from lading.workers import child as children
from lading.workers.child import Child, Start

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")

AHEAD = 4
"""Chunks that wait for each process."""
WORTH_IT: dict[Start, int] = {"copy": 2, "new": 8}
"""Chunks from which on other processes are started: a new one takes seconds to load what it needs."""


class Helpers(Generic[Chunk, Answer]):
    """So many processes that do a job.

    Copies do all of it, and this process hands out the chunks: while it worked itself, it would let them wait. Of new
    ones there is one less; they join in as soon as they are ready. The job is a callable; each process calls it with
    one chunk at a time. A new process must be able to unpickle it.
    """

    def __init__(self, job: Callable[[Chunk], Answer], workers: int, how: Start = children.USUAL) -> None:
        alone = workers < 2
        self.job, self.others, self.how = job, 0 if alone else workers - (how == "new"), how
        self.asked = 0
        """Chunks that were handed to other processes."""
        self._children: list[Child] = []
        self._threads = ThreadPoolExecutor(max_workers=max(1, self.others))
        self._idle: SimpleQueue[Child] = SimpleQueue()
        self._places = Semaphore(0)
        self._greetings: list[Future[None]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            child.kill()
        self._threads.shutdown(cancel_futures=True)

    def each(self, chunks: Iterable[Chunk], number: int) -> Iterator[Answer]:
        """What the job makes of so many chunks, in their order, whoever does it."""
        if self.others and number >= WORTH_IT[self.how]:
            self.start()
        waiting: deque[Future[Answer]] = deque()
        for chunk in chunks:
            if self._takes_more():
                waiting.append(self._threads.submit(self._ask, chunk))
                self.asked += 1
            else:
                waiting.append(self._done(chunk))
            full = self.how == "copy" and len(waiting) > AHEAD * self.others
            while waiting and (full or waiting[0].done()):
                yield waiting.popleft().result()
                full = False
        while waiting:
            yield waiting.popleft().result()
        for greeting in self._greetings:
            if greeting.done():
                greeting.result()

    def _takes_more(self) -> bool:
        """Whether the next chunk is for others."""
        return bool(self._children) and (self.how == "copy" or self._places.acquire(blocking=False))

    def start(self) -> None:
        """Start the others, if they are not started yet. They are not waited for."""
        if self._children:
            return
        self._children = children.start(self.job, _answer, self.others, self.how)
        self._greetings = [self._threads.submit(self._greet, child) for child in self._children]

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

    def _greet(self, child: Child) -> None:
        try:
            _asked(child, None)
        finally:
            # One that ended is handed a chunk all the same: whoever waits for its answer is told.
            self._idle.put(child)
            self._places.release(AHEAD)

    def _ask(self, chunk: Chunk) -> Answer:
        child = self._idle.get()
        try:
            answer = _asked(child, chunk)
        finally:
            self._idle.put(child)
            self._places.release()
        if isinstance(answer, LadingError):
            raise answer
        return cast("Answer", answer)


def _asked(child: Child, chunk: object) -> object:
    try:
        return child.ask(chunk)
    except (EOFError, OSError) as error:
        raise CorpusError(
            found=f"a helping process that ended by itself (exit code {child.ended()})",
            wanted="its answer",
            consequence="what was kept so far stays; with workers=0 this process does it all",
        ) from error


def _answer(job: Callable[[Any], object], chunk: Any) -> object:
    """In another process: what the job makes of a chunk; to nothing, that it is there."""
    try:
        return None if chunk is None else job(chunk)
    except LadingError as error:
        return error
