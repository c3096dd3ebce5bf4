"""Processes that count for this one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Semaphore
from typing import TYPE_CHECKING, Any, Self

from lading.errors import CorpusError, LadingError
from lading.lengths.rows import Counted
from lading.loader.counting import children
from lading.loader.counting.children import Child, Start

if TYPE_CHECKING:
    from lading.loader.samples import Samples

Chunk = tuple[list[int], list[int]]
"""Rows of a file, and the numbers of their samples."""

AHEAD = 4
"""Chunks that wait for each process."""
WORTH_IT: dict[Start, int] = {"copy": 2, "new": 8}
"""Chunks from which on other processes are started: a new one takes seconds to load what it needs."""


def count_chunk(samples: Samples, chunk: Chunk) -> Counted:
    """One chunk, counted."""
    rows, indices = chunk
    return Counted.of(rows, samples.measure(indices))


class Helpers:
    """So many processes that count: this one, and others, which join in as soon as they are ready."""

    def __init__(self, samples: Samples, workers: int, how: Start = children.USUAL) -> None:
        self.samples, self.others, self.how = samples, max(0, workers - 1), how
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

    def count(self, chunks: Iterable[Chunk], number: int) -> Iterator[Counted]:
        """So many chunks, counted, in their order, whoever counts them."""
        if self.others and number >= WORTH_IT[self.how]:
            self.start()
        waiting: deque[Future[Counted]] = deque()
        for chunk in chunks:
            if self._places.acquire(blocking=False):
                waiting.append(self._threads.submit(self._ask, chunk))
                self.asked += 1
            else:
                waiting.append(self._counted(chunk))
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
        self._children = children.start(self.samples, _answer, self.others, self.how)
        self._greetings = [self._threads.submit(self._greet, child) for child in self._children]

    def wait(self) -> None:
        """Wait until all of the others are ready."""
        for greeting in self._greetings:
            greeting.result()

    def _counted(self, chunk: Chunk) -> Future[Counted]:
        """A chunk counted here. Its error waits for its turn: whoever counts, the first one is raised."""
        future: Future[Counted] = Future()
        try:
            future.set_result(count_chunk(self.samples, chunk))
        except LadingError as error:
            future.set_exception(error)
        return future

    def _greet(self, child: Child) -> None:
        _asked(child, None)
        self._idle.put(child)
        self._places.release(AHEAD)

    def _ask(self, chunk: Chunk) -> Counted:
        child = self._idle.get()
        try:
            answer = _asked(child, chunk)
        finally:
            self._idle.put(child)
            self._places.release()
        if isinstance(answer, LadingError):
            raise answer
        assert isinstance(answer, Counted)
        return answer


def _asked(child: Child, chunk: Chunk | None) -> object:
    try:
        return child.ask(chunk)
    except (EOFError, OSError) as error:
        raise CorpusError(
            found=f"a counting process that ended by itself (exit code {child.ended()})",
            wanted="its answer",
            consequence="what was counted so far is kept; with workers=0 this process counts",
        ) from error


def _answer(samples: Any, chunk: Chunk | None) -> Counted | LadingError | None:
    """In another process: a chunk, counted; to nothing, that it is there."""
    try:
        return None if chunk is None else count_chunk(samples, chunk)
    except LadingError as error:
        return error
