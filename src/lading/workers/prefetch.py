"""Batches in their order, each begun early enough: a pack of video does not hold up the packs of text around it.

One `DataLoader` of many workers deals batches round and round. Behind a pack that takes ten times as long, the next
ones of its worker wait, and the training step with them. Here every worker has a `DataLoader` of its own, and which
batches it makes is planned backwards, from when they are due: a heavy one keeps its worker free for the turns before
it, and what is due in the meantime goes to the others.

Batches are handed out in the order of the plan, whoever makes them, and no more of them wait than with one `DataLoader`
of as many workers: two for each. When a worker is killed, or ended because it hangs, another begins where it stood.
"""

from __future__ import annotations

import gc
import logging
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any, Generic, TypeVar

from torch._C import _remove_worker_pids
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

from lading.workers.interrupts import interrupts_afterwards

LOOK_SECONDS = 1.0
"""How often a worker is looked after while its batch is waited for."""
MOST_DEATHS = 3
"""Workers may die this often without a single batch in between: then it is no accident, and the error is raised."""
DYING_SECONDS = 5.0
"""Seconds that a worker may take to be gone, once what it handed over has broken off."""

logger = logging.getLogger("lading")
T = TypeVar("T")
Numbers = list[int]
"""The packs of one batch."""


class Prefetcher(Generic[T]):
    """Iterates `batches` in their order; `workers` says which worker makes each of them.

    `open_loader` makes a worker's `DataLoader` of its share of the batches. `end_if_late` is asked about a worker whose
    batch is waited for, again and again: it ends the process if it hangs, and says whether it did.
    """

    def __init__(
        self,
        open_loader: Callable[[int, list[Numbers]], DataLoader[Any]],
        batches: Sequence[Numbers],
        workers: Sequence[int],
        end_if_late: Callable[[int, BaseProcess], bool] = lambda worker, process: False,
    ) -> None:
        self._open_loader, self._batches, self._workers = open_loader, batches, workers
        self._end_if_late = end_if_late

    def __iter__(self) -> Iterator[T]:
        shares: dict[int, list[Numbers]] = {}
        for batch, worker in zip(self._batches, self._workers, strict=True):
            shares.setdefault(worker, []).append(batch)
        # All of them begin now, not when their first batch is due.
        running = {
            worker: _WorkerBatches[T](partial(self._open_loader, worker), share, partial(self._end_if_late, worker))
            for worker, share in sorted(shares.items())
        }
        for worker in self._workers:
            yield next(running[worker])


class _WorkerBatches(Generic[T]):
    """The batches of one worker; when it has died, or had to be ended, another makes those that are left."""

    def __init__(
        self,
        open_loader: Callable[[list[Numbers]], DataLoader[Any]],
        batches: list[Numbers],
        end_if_late: Callable[[BaseProcess], bool],
    ) -> None:
        self._open_loader, self._left, self._end_if_late = open_loader, deque(batches), end_if_late
        self._deaths = 0
        self._running = self._start()

    def __next__(self) -> T:
        while True:
            try:
                batch: T = next(self._running)
            except (RuntimeError, EOFError, OSError) as error:
                if not isinstance(self._running, _MultiProcessingDataLoaderIter):
                    raise
                if str(error).startswith("DataLoader timed out"):
                    if not self._end_if_late(self._running._workers[0]):
                        continue
                    logger.warning("A worker hung and was ended. Another carries on with the batch it was to make.")
                else:
                    self._deaths += 1
                    if self._deaths > MOST_DEATHS or not _is_death(error, self._running._workers[0]):
                        raise
                    logger.warning("A worker died (%s). Another carries on with the batch it was to make.", error)
                free_decoders()
                self._running = self._start()
                continue
            self._deaths = 0
            self._left.popleft()
            return batch

    def _start(self) -> Iterator[T]:
        loader = self._open_loader(list(self._left))
        if not loader.num_workers:
            return iter(loader)
        loader.timeout = LOOK_SECONDS
        with _quiet_tokenizers(), interrupts_afterwards():
            batches = iter(loader)
        if isinstance(batches, _MultiProcessingDataLoaderIter):
            # When a worker dies, torch raises from a signal handler, in the middle of whatever the main thread is
            # doing: a training step, most likely. `next()` notices as well, and there it can be met.
            _remove_worker_pids(id(batches))
            batches._worker_pids_set = False
            # A batch that a worker died over is waited for as long as anybody could still write the rest of it.
            batches._worker_result_queue._writer.close()  # type: ignore[attr-defined]  # it is not typed
        return batches


def free_decoders() -> None:
    """Free what is garbage, before workers are forked.

    A decoder that is not freed yet (an error may have held on to it) would be freed by a worker, which then waits
    forever for its threads: a forked process has none of them.
    """
    gc.collect()


def _is_death(error: Exception, worker: BaseProcess) -> bool:
    """Whether the error is about a worker that has died."""
    if isinstance(error, RuntimeError) and not str(error).startswith("DataLoader worker (pid"):
        return False
    # "Caught …" is how an exception of a living worker begins, whatever it says.
    if str(error).startswith("Caught "):
        return False
    worker.join(DYING_SECONDS)  # what it had open is closed a moment before it is gone
    return not worker.is_alive()


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
