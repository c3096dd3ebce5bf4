"""A job done by several processes: the standard library's pool, whose processes end when they should.

On Linux they are forked: each is there at once, with everything that was loaded, as `DataLoader` makes its workers.
Elsewhere they are spawned, which takes seconds, and loads what the job needs again.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Literal, Self, TypeVar

from lading.errors import ConfigError, CorpusError
from lading.private_names import expect_no_answers, processes_of
from lading.workers.interrupts import INTERRUPTS, interrupts_afterwards

Chunk = TypeVar("Chunk")
Answer = TypeVar("Answer")
StartMethod = Literal["fork", "spawn"]

START_METHOD: StartMethod = "fork" if sys.platform == "linux" else "spawn"
WORTH_STARTING: dict[StartMethod, int] = {"fork": 2, "spawn": 8}
"""Chunks from which on processes are started: a spawned one takes seconds to load what it needs."""
QUEUED = 4
"""Chunks that wait for each process."""

is_pool_process = False
"""Whether this process was started by a pool, and does nothing else."""
_job: Callable[[Any], Any] | None = None


class ProcessPool(Generic[Chunk, Answer]):
    """So many processes that do a job: a callable, which each of them calls with one chunk at a time.

    This process hands out the chunks and does none itself; with fewer than two workers, or hardly any chunks, it does
    all. A spawned process must be able to unpickle the job.

    >>> with ProcessPool(abs, workers=0) as pool:
    ...     list(pool.map([-3, 4], number=2))
    [3, 4]
    """

    def __init__(self, job: Callable[[Chunk], Answer], workers: int, start_method: StartMethod = START_METHOD) -> None:
        self.job, self.workers, self.start_method = job, workers, start_method
        self._executor: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        # Whoever is interrupted does not wait until the chunks in hand are done.
        for process in self.processes():
            process.kill()
        if self._executor is not None:
            expect_no_answers(self._executor)
            self._executor.shutdown(cancel_futures=True)

    def processes(self) -> list[BaseProcess]:
        """Those that were started."""
        return [] if self._executor is None else processes_of(self._executor)

    def map(self, chunks: Iterable[Chunk], number: int) -> Iterator[Answer]:
        """What the job makes of so many chunks, in their order, whoever does it. The first error is raised."""
        if self._executor is None and (self.workers < 2 or number < WORTH_STARTING[self.start_method]):
            yield from map(self.job, chunks)
            return
        waiting: deque[Future[Answer]] = deque()
        try:
            executor = self._executor or self._start()
            for chunk in chunks:
                waiting.append(executor.submit(_do, chunk))
                while waiting and (waiting[0].done() or len(waiting) > QUEUED * self.workers):
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool as error:
            raise self._broken() from error

    def _start(self) -> ProcessPoolExecutor:
        self._executor = executor = ProcessPoolExecutor(
            self.workers,
            mp_context=multiprocessing.get_context(self.start_method),
            initializer=_begin,
            initargs=(self._job_to_send(),),
        )
        with interrupts_afterwards():
            # An interrupt is met by this process alone: the others are told not to listen before they can hear one.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
            try:
                for _ in range(self.workers):
                    executor.submit(os.getpid)
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return executor

    def _job_to_send(self) -> Callable[[Chunk], Answer]:
        if self.start_method == "spawn":
            try:
                pickle.dumps(self.job)
            except (pickle.PicklingError, TypeError, AttributeError) as error:
                raise ConfigError(
                    found=f"a corpus or processor that cannot be handed to another process ({error})",
                    wanted="one that can be pickled, or workers=0",
                ) from error
        return self.job

    def _broken(self) -> CorpusError:
        processes = self.processes()
        if self._executor is not None:
            self._executor.shutdown()  # from then on it is known how each of them ended
        # When one has died, the executor ends the others by SIGTERM.
        codes = [process.exitcode for process in processes if process.exitcode != -signal.SIGTERM]
        return CorpusError(
            found=f"a worker process that ended by itself (exit code {codes[0] if codes else -signal.SIGTERM})",
            wanted="what it was to make of its rows",
            consequence="what was kept so far stays; -9 is often the system's, for want of memory: take fewer workers,"
            " or none (workers=0), so that this process does it all",
        )


def _do(chunk: Any) -> Any:
    assert _job is not None
    return _job(chunk)


def _begin(job: Callable[[Any], Any]) -> None:
    """What a process of a pool does first."""
    import torch

    global is_pool_process, _job
    is_pool_process, _job = True, job
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who interrupts the parent has it end this one
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, INTERRUPTS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # A forked process has no threads but this one; torch and the tokenizer would wait for those of the parent.
    torch.set_num_threads(1)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    os.dup2(2, 1)  # what a library prints must not come between what the parent prints for programs


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    while parent is not None and os.getppid() == parent.pid:
        parent.join(1.0)
    os._exit(1)
