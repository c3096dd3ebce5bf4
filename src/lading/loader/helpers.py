"""Processes that count for this one.

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
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Self

from lading.errors import ConfigError, CorpusError, LadingError
from lading.lengths.rows import Counted
from lading.loader.watchdog import serve_only

if TYPE_CHECKING:
    from lading.loader.samples import Samples

Chunk = tuple[list[int], list[int]]
"""Rows of a file, and the numbers of their samples."""

AHEAD = 4
"""Chunks that wait for each process."""
COMMAND = "from lading.loader.helpers import serve; serve()"


def count_chunk(samples: Samples, chunk: Chunk) -> Counted:
    """One chunk, counted."""
    rows, indices = chunk
    return Counted.of(rows, samples.measure(indices))


class Helpers:
    """So many processes, started when there is enough for them to do. With fewer than two, this process counts."""

    def __init__(self, samples: Samples, workers: int) -> None:
        self.samples, self.workers = samples, workers
        self._children: list[subprocess.Popen[bytes]] = []
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for child in self._children:
            child.kill()
            child.wait()

    def count(self, chunks: Iterable[Chunk], number: int) -> Iterator[Counted]:
        """So many chunks, counted, in their order, whoever counts them."""
        if self.workers < 2 or number < 2:
            yield from (count_chunk(self.samples, chunk) for chunk in chunks)
            return
        self._start()
        waiting: deque[Future[Counted]] = deque()
        with ThreadPoolExecutor(max_workers=self.workers) as threads:
            try:
                for chunk in chunks:
                    waiting.append(threads.submit(self._ask, chunk))
                    if len(waiting) > AHEAD * self.workers:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _ask(self, chunk: Chunk) -> Counted:
        child = self._idle.get()
        try:
            assert child.stdin is not None
            assert child.stdout is not None
            pickle.dump(chunk, child.stdin)
            child.stdin.flush()
            answer = pickle.load(child.stdout)
        except (EOFError, BrokenPipeError) as error:
            raise CorpusError(
                found=f"a counting process that ended by itself (exit code {child.wait()})",
                wanted="its answer",
                consequence="what was counted so far is kept; with workers=0 this process counts",
            ) from error
        finally:
            self._idle.put(child)
        if isinstance(answer, LadingError):
            raise answer
        assert isinstance(answer, Counted)
        return answer

    def _start(self) -> None:
        if self._children:
            return
        try:
            parcel = pickle.dumps(self.samples)
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise ConfigError(
                found=f"a corpus or processor that cannot be handed to another process ({error})",
                wanted="one that can be pickled, or workers=0",
            ) from error
        quiet = {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1"}
        environment = {**os.environ, **quiet, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        for _ in range(self.workers):
            child = subprocess.Popen(
                [sys.executable, "-c", COMMAND], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
            )
            self._children.append(child)
        for child in self._children:
            assert child.stdin is not None
            child.stdin.write(parcel)
            child.stdin.flush()
            self._idle.put(child)


def serve() -> None:
    """A helper's life: a corpus, then chunks of it, until the input ends."""
    # What a library prints must not come between the answers; and who interrupts the parent interrupts no answer.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve_only()
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    samples = pickle.load(sys.stdin.buffer)
    while True:
        try:
            chunk = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answer(samples, chunk), answers)
        answers.flush()


def _answer(samples: Any, chunk: Chunk) -> Counted | LadingError:
    try:
        return count_chunk(samples, chunk)
    except LadingError as error:
        return error
