"""The four ways to feed a model, each by worker processes; and a thread that holds the next batches ready."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader, Dataset

from lading import Loader
from lading.attention import LANGUAGE
from lading.loader import Samples
from lading.packing import build_pack, collate_samples, trained_only
from lading.records import Batch, Encoded, Pack
from lading.vlm.samplers import length_order


@dataclass(frozen=True, kw_only=True, slots=True)
class Mode:
    """One way to feed a model, and the attention of its language model."""

    title: str
    rows: Literal["random", "alike", "packs"]
    language: str = "sdpa"
    trained_only: bool = False
    """Whether the vocabulary is scored only where a label is; a batch of one row allows that, padded rows do not."""


MODES = {
    "padded": Mode(title="padded, random order", rows="random"),
    "grouped": Mode(title="padded, length groups", rows="alike"),
    "packed-mask": Mode(title="packs, dense mask", rows="packs"),
    "packed-varlen": Mode(title="packs, varlen attention", rows="packs", language=LANGUAGE),
    "packed-trained": Mode(title="packs, varlen, trained places", rows="packs", language=LANGUAGE, trained_only=True),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """What all modes draw from."""

    loader: Loader
    """Packs with the boundaries of their documents; a dense mask is made from the same batches' positions."""
    lengths: NDArray[np.int64]
    documents: int
    """Documents in a padded batch: as many as a pack holds on average."""

    @property
    def samples(self) -> Samples:
        """The same documents, one by one."""
        return self.loader.samples


def open_source(corpus: Path, processor: Any, *, pack_size: int, documents: int, workers: int) -> Source:
    """Count the corpus; a padded batch gets `documents`, or as many as fill a pack on average."""
    loader = Loader(corpus, processor, pack_size=pack_size, num_workers=workers, attention="varlen")
    lengths = np.asarray(loader.lengths.tokens, dtype=np.int64)
    fitting = max(2, round(pack_size / float(lengths.mean())))
    return Source(loader=loader, lengths=lengths, documents=documents or fitting)


def batches(source: Source, mode: Mode, *, epoch: int = 0) -> Generator[Batch]:
    """Batches without end, one epoch after the other."""
    while True:
        if mode.rows == "packs":
            source.loader.set_epoch(epoch)
            yield from (trained_only(batch) if mode.trained_only else batch for batch in source.loader)
        else:
            yield from _padded(source, _groups(source, alike=mode.rows == "alike", seed=epoch))
        epoch += 1


def _groups(source: Source, *, alike: bool, seed: int) -> list[list[int]]:
    """The documents of each padded batch: any, or such of like length; the batches in random order."""
    random = np.random.default_rng(seed)
    order = length_order(source.lengths.tolist())[0] if alike else random.permutation(len(source.lengths))
    size = source.documents
    groups = [order[start : start + size].tolist() for start in range(0, len(order) - size + 1, size)]
    return [groups[place] for place in random.permutation(len(groups))]


class Singles(Dataset[Pack]):
    """Every document in a row of its own."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples

    def __getitem__(self, index: int) -> Pack:
        sample, facts = self.samples.encode(index), self.samples.facts
        assert isinstance(sample, Encoded), sample
        return build_pack([sample], fields=facts.family.table, three_way=facts.three_way)


@dataclass(frozen=True, kw_only=True, slots=True)
class Padder:
    """Rows → a padded batch."""

    samples: Samples

    def __call__(self, singles: list[Pack]) -> Batch:
        """One batch."""
        facts = self.samples.facts
        return collate_samples(singles, fields=facts.family.table, pad_token=facts.pad_token)


def _padded(source: Source, groups: list[list[int]]) -> Generator[Batch]:
    yield from DataLoader(
        Singles(source.samples),
        batch_sampler=groups,
        collate_fn=Padder(samples=source.samples),
        num_workers=source.loader.config.num_workers,
    )


class Ahead:
    """A thread that takes batches from the workers, pins them, and holds two ready.

    The first is taken here: workers are forked when it is asked for, and that is best done while nothing else runs.
    """

    def __init__(self, source: Generator[Batch], *, pin: bool) -> None:
        self._source, self._pin = source, pin
        self._ready: queue.Queue[Batch | BaseException] = queue.Queue(maxsize=2)
        self._stop = threading.Event()
        self._put(next(source))
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            for batch in self._source:
                self._put(batch)
                if self._stop.is_set():
                    break
        except BaseException as error:  # noqa: BLE001 - handed over, and raised by whoever waits for a batch
            self._put(error)
        finally:
            self._source.close()  # Its workers end here.

    def _put(self, item: Batch | BaseException) -> None:
        if self._pin and isinstance(item, Batch):
            item = item.pin_memory()
        while not self._stop.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=0.2)
                return

    def get(self) -> Batch:
        """The next batch."""
        item = self._ready.get()
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self) -> None:
        """End the thread and the workers."""
        self._stop.set()
        self._thread.join(timeout=60)
