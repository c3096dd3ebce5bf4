"""Batches that outlive their worker: when it is killed, another begins where it stood.

torch's own answer is to raise from a signal handler, in the middle of whatever the main thread is doing: a training
step, most likely. So our workers are taken off the list that the handler looks at. `next()` still notices when one has
died, and there it can be met.

A worker may die in the middle of a batch that it is handing over. Whoever reads that would wait for the rest forever,
as long as anybody could still write it; so this process keeps no end to write to.
"""

from __future__ import annotations

import gc
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from torch._C import _remove_worker_pids
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

MOST_DEATHS = 3
"""Workers may die this often without a single batch in between: then it is no accident, and the error is raised."""

logger = logging.getLogger("lading")
T = TypeVar("T")
PASSING = 5.0
"""Seconds that a worker may take to be gone, once what it handed over has broken off."""


class Reviving(Generic[T]):
    """Iterates what `open_loader` makes of `batches`; when a worker has died, of those that are left.

    `on_death` is told a dead worker's exit code, before another takes its place.
    """

    def __init__(
        self,
        open_loader: Callable[[list[list[int]]], DataLoader[Any]],
        batches: list[list[int]],
        on_death: Callable[[int | None], object] = lambda _: None,
    ) -> None:
        self._open_loader, self._left, self._deaths, self._on_death = open_loader, deque(batches), 0, on_death
        self._running = self._begin()

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        while True:
            try:
                batch = next(self._running)
            except (RuntimeError, EOFError, OSError) as error:
                self._deaths += 1
                dead = _dead_worker(self._running, error)
                if dead is None or self._deaths > MOST_DEATHS:
                    raise
                logger.warning("A worker died (%s). Another carries on with the batch it was to make.", error)
                self._on_death(dead.exitcode)
                sweep()
                self._running = self._begin()
                continue
            self._deaths = 0
            self._left.popleft()
            return batch

    def _begin(self) -> Iterator[T]:
        loader = self._open_loader(list(self._left))
        if not loader.num_workers:
            return iter(loader)
        with _quiet_tokenizers():
            return _unwatched(iter(loader))


def sweep() -> None:
    """Free what is garbage, before workers are forked.

    A decoder that is not freed yet (an error may have held on to it) would be freed by a worker, which then waits
    forever for its threads: a forked process has none of them.
    """
    gc.collect()


def _unwatched(batches: Iterator[T]) -> Iterator[T]:
    """The iterator, its workers no longer watched by torch's handler, and alone with what they write their batches to.
    It has no public switch for either.
    """
    if isinstance(batches, _MultiProcessingDataLoaderIter) and batches._worker_pids_set:
        _remove_worker_pids(id(batches))
        batches._worker_pids_set = False
        batches._worker_result_queue._writer.close()  # type: ignore[attr-defined]  # nor is this one typed
    return batches


def _dead_worker(batches: Iterator[T], error: Exception) -> BaseProcess | None:
    """The worker whose death the error is about, if it is about one."""
    if not isinstance(batches, _MultiProcessingDataLoaderIter) or str(error).startswith("Caught "):
        return None  # "Caught …" is how an exception of a living worker begins, whatever it says
    if isinstance(error, RuntimeError) and not str(error).startswith("DataLoader worker (pid"):
        return None
    ends = {worker.sentinel: worker for worker in batches._workers}
    for ended in connection.wait(list(ends), PASSING):
        worker = ends[ended]  # type: ignore[index]  # a sentinel is a number here, and an object elsewhere
        worker.join(PASSING)  # what it had open is closed a moment before it is gone
        return worker
    return None


@contextmanager
def _quiet_tokenizers() -> Iterator[None]:
    """Workers are forked after the tokenizer used its threads here; told so, it does not warn about it in each."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
