"""Batches that outlive their workers: when one is killed, others begin where it stood.

torch's own answer is to raise from a signal handler, in the middle of whatever the main thread is doing: a training
step, most likely. So our workers are taken off the list that the handler looks at. `next()` still notices when one has
died, and there it can be met.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from torch._C import _remove_worker_pids
from torch.utils.data import DataLoader
from torch.utils.data.dataloader import _MultiProcessingDataLoaderIter

MOST_DEATHS = 3
"""Workers may die this often without a single batch in between: then it is no accident, and the error is raised."""

logger = logging.getLogger("lading")
T = TypeVar("T")


class Reviving(Generic[T]):
    """Iterates what `open_loader` gives; asks it again, for what is left, when a worker has died."""

    def __init__(self, open_loader: Callable[[], DataLoader[Any]]) -> None:
        self._open_loader = open_loader

    def __iter__(self) -> Iterator[T]:
        batches, deaths = self._batches(), 0
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except RuntimeError as error:
                deaths += 1
                if not _of_a_dead_worker(error) or deaths > MOST_DEATHS:
                    raise
                logger.warning("A worker died (%s). Others carry on with the batch it was to make.", error)
                batches = self._batches()
                continue
            deaths = 0
            yield batch

    def _batches(self) -> Iterator[T]:
        loader = self._open_loader()
        if not loader.num_workers:
            return iter(loader)
        with _quiet_tokenizers():
            return _unwatched(iter(loader))


def _unwatched(batches: Iterator[T]) -> Iterator[T]:
    """The iterator, its workers no longer watched by torch's handler. It has no public switch for that."""
    if isinstance(batches, _MultiProcessingDataLoaderIter) and batches._worker_pids_set:
        _remove_worker_pids(id(batches))
        batches._worker_pids_set = False
    return batches


def _of_a_dead_worker(error: RuntimeError) -> bool:
    # An exception of a worker begins otherwise ("Caught …"), whatever it says.
    return str(error).startswith("DataLoader worker (pid")


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
