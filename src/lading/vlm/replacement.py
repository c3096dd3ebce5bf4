"""Replacing what fails: which sample stands in is a function of (seed, epoch, index, attempt), and it is written down.

    sample 3 of 8 fails     attempt 1 → 1     attempt 2 → 4     …     never 3, and no other twice

With `max_retries` used up, `TooManyFailures` lists every cause.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch.utils.data import Dataset, get_worker_info

from lading.errors import ConfigError, TooManyFailures
from lading.ledger import Ledger
from lading.records import Dropped, SampleKey
from lading.samples.skip import SkipPolicy

REMEMBERED = 8192
"""How many of the numbers asked for last are kept, to know what a batch is made of."""


def replacement(index: int, attempt: int, *, size: int, seed: int, epoch: int) -> int:
    """Which of `size` samples stands in for sample `index`; attempt 0 is the sample itself.

    The others are shuffled, as far as is needed, so that every one comes up once before any comes up again. (Walked
    with a fixed step, all of a few attempts may lie in one bad segment of the data.)

    >>> [replacement(3, attempt, size=8, seed=0, epoch=0) for attempt in range(4)]
    [3, 1, 4, 2]
    """
    others = size - 1
    if attempt == 0 or others < 1:
        return index % size
    dice = np.random.default_rng([seed, epoch, index])
    chosen, moved = 0, dict[int, int]()
    for place in range((attempt - 1) % others + 1):
        drawn = int(dice.integers(place, others))
        # A shuffle swaps two places; only those that were are written down.
        chosen, moved[drawn] = moved.get(drawn, drawn), moved.get(place, place)
    return (index + 1 + chosen) % size


class ReplacementLog:
    """Where replacements are written down; without a ledger, nowhere.

    A worker has a copy of the ledger, and what it writes there is lost with it. So the process that owns the ledger
    writes into it at once, and workers append a line to a file, which the owner reads when the account is settled.
    """

    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger = ledger
        self.owner = os.getpid()
        self.entries: list[Dropped] = []
        self.path: Path | None = None
        if ledger is not None:
            self._open()

    def __getstate__(self) -> dict[str, Any]:
        # The ledger of a large corpus is large, and a copy of it is of no use.
        return {"ledger": None, "owner": self.owner, "entries": [], "path": self.path}

    def start(self, ledger: Ledger | None) -> None:
        """Begin an epoch: what was written down is forgotten, and a new ledger takes the place of the old one."""
        self.entries.clear()
        if ledger is not None:
            self.ledger = ledger
        if self.path is not None:
            self.path.write_bytes(b"")
        elif self.ledger is not None:
            self._open()

    def write(self, entry: Dropped) -> None:
        """Note that a sample was replaced or dropped."""
        if os.getpid() == self.owner and self.ledger is not None:
            self.entries.append(entry)
            self.ledger.dropped(entry)
        elif self.path is not None:
            # One write of one line at the end of the file: lines of several workers do not mix.
            with self.path.open("ab", buffering=0) as file:
                file.write(json.dumps(entry.to_dict()).encode() + b"\n")

    def settle(self, trained: Iterable[int]) -> Ledger:
        """The ledger with these samples trained on, except for those that were replaced or dropped in any process."""
        if self.ledger is None or self.path is None:
            raise ConfigError(
                found="no ledger", wanted="one: PreTokenizedDatasetWrapper(…, ledger=Ledger(…))", where="account"
            )
        self.ledger.trained(list(trained))
        lines = self.path.read_bytes().splitlines()
        for entry in (*self.entries, *(Dropped.from_dict(json.loads(line)) for line in lines)):
            self.ledger.dropped(entry)
        return self.ledger

    def _open(self) -> None:
        handle, name = tempfile.mkstemp(prefix="lading-", suffix=".jsonl")
        os.close(handle)
        self.path = Path(name)
        weakref.finalize(self, _remove, self.path, self.owner)


def _remove(path: Path, owner: int) -> None:
    # A forked worker has this finaliser too; the file is not its own.
    if os.getpid() == owner:
        path.unlink(missing_ok=True)


class Indexed(Protocol):
    """What can be wrapped: anything with a length and items by number."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Any: ...


@runtime_checkable
class Named(Protocol):
    """A data set whose samples have names of their own."""

    def key(self, place: int, /) -> SampleKey: ...


def key_of(dataset: object, place: int) -> SampleKey:
    """The name that a data set has for a sample, or one made of its number."""
    if isinstance(dataset, Named):
        return dataset.key(place)
    source = type(dataset).__name__
    return SampleKey(index=place, source=source, where=f"{source}[{place}]")


class Replacing(Dataset[Any]):
    """A data set whose bad samples are replaced by named others.

    With a `ledger`, every replacement is written there. Workers are processes of their own: what they replaced arrives
    when `account` is called. `set_epoch` is seen by workers that live on.
    """

    def __init__(self, dataset: Indexed, *, max_retries: int, seed: int, ledger: Ledger | None) -> None:
        problems = [
            f"{name} {value}" for name, value in (("max_retries", max_retries), ("seed", seed)) if int(value) < 0
        ]
        if problems:
            raise ConfigError(found=", ".join(problems), wanted="0 or more", where=type(self).__name__)
        if len(dataset) == 0:
            raise ConfigError(found="a data set without examples", wanted="at least one", where=type(self).__name__)
        self.dataset, self.max_retries, self.seed = dataset, max_retries, seed
        self.log = ReplacementLog(ledger)
        # In shared memory: workers that outlive an epoch would otherwise go on with the number they started with.
        self._epoch = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]  # torch left it untyped
        self._asked: deque[int] = deque(maxlen=REMEMBERED)
        self._unasked = 0

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        if not -len(self) <= index < len(self):
            raise IndexError(f"sample {index} of {len(self)}")
        index %= len(self)
        self._asked.append(index)
        return self.obtain(index)[0]

    @property
    def epoch(self) -> int:
        """The epoch that replacements are drawn for."""
        return int(self._epoch)

    def set_epoch(self, epoch: int, ledger: Ledger | None = None) -> None:
        """Start another epoch, with a ledger of its own if one is given."""
        self._epoch.fill_(epoch)
        self.log.start(ledger)

    def fetch(self, index: int) -> Any:
        """One sample, or the error it has."""
        return self.dataset[index]

    def key(self, place: int) -> SampleKey:
        """The name of a sample: its data set's own, or its number."""
        return key_of(self.dataset, place)

    def stand_in(self, index: int, attempt: int) -> int:
        return replacement(index, attempt, size=len(self), seed=self.seed, epoch=self.epoch)

    def obtain(self, index: int) -> tuple[Any, int]:
        """A sample, or the first of its stand-ins that works, and the number it has."""
        failed: list[Dropped] = []
        for attempt in range(1 + min(self.max_retries, len(self) - 1)):
            chosen = self.stand_in(index, attempt)
            outcome = SkipPolicy().attempt(self.key(chosen), partial(self.fetch, chosen))
            if not isinstance(outcome, Dropped):
                if failed:
                    self.log.write(replace(failed[0], by=(self.key(chosen),)))
                return outcome, chosen
            failed.append(outcome)
        self.log.write(failed[0])
        raise exhausted(failed, where=str(self.key(index)))

    def asked_last(self, count: int) -> list[int] | None:
        """The numbers asked for last: a worker fetches a batch, then collates it, with nothing in between.

        `None` where fewer were asked for: the batch was fetched past this data set.
        """
        recent = list(self._asked)[-count:]
        return recent if len(recent) == count else None

    def counted_next(self, count: int) -> list[int]:
        """Numbers for a batch that was fetched past this data set: nobody knows its own, so batches are counted.

        They are those of data read in order, the workers taking turns, and go on beyond the last sample: batches of one
        size share none, so that each has stand-ins of its own.
        """
        worker = get_worker_info()
        turn, workers = (0, 1) if worker is None else (worker.id, worker.num_workers)
        first = self._unasked + turn * count
        self._unasked += workers * count
        return list(range(first, first + count))

    def robust_collate(self, collate_fn: Callable[[list[Any]], Any], max_retries: int | None = None) -> RobustCollate:
        """Wrap `collate_fn` so that, when it fails, the whole batch is drawn again, by the same rules."""
        retries = self.max_retries if max_retries is None else max_retries
        return RobustCollate(dataset=self, collate_fn=collate_fn, max_retries=retries)

    def account(self, handed: Iterable[int] = ()) -> Ledger:
        """The ledger, with what workers replaced. `handed` are the numbers a sampler gave out: those count as trained,
        unless another sample stood in for them.
        """
        return self.log.settle(self.key(index).index for index in handed)


@dataclass(frozen=True, kw_only=True, slots=True)
class RobustCollate:
    """A collate function that draws its batch again when it fails."""

    dataset: Replacing
    collate_fn: Callable[[list[Any]], Any]
    max_retries: int
    """How often; for each sample of such a batch the data set's own bound holds."""

    def __call__(self, samples: Sequence[Any]) -> Any:
        """The batch of these samples, or of the first stand-ins that work together."""
        asked = self.dataset.asked_last(len(samples))
        numbers = self.dataset.counted_next(len(samples)) if asked is None else asked
        names = "fetched elsewhere" if asked is None else ", ".join(map(str, asked))
        place = SampleKey(index=-1, source="batch", where=f"batch of samples {names}")
        failed: list[Dropped] = []
        batch, used = list(samples), numbers
        for attempt in range(1 + self.max_retries):
            if attempt:
                drawn = [self.dataset.obtain(self.dataset.stand_in(index, attempt)) for index in numbers]
                batch, used = [sample for sample, _ in drawn], [number for _, number in drawn]
            outcome = SkipPolicy().attempt(place, partial(self.collate_fn, batch))
            if not isinstance(outcome, Dropped):
                # A ledger knows samples by their numbers: of a batch without them there is nothing to tell it.
                if failed and asked is not None:
                    for index, number in zip(asked, used, strict=True):
                        by = (self.dataset.key(number),)
                        self.dataset.log.write(replace(failed[0], key=self.dataset.key(index), by=by))
                return outcome
            failed.append(outcome)
        raise exhausted(failed, where=place.where)


def exhausted(failed: Sequence[Dropped], *, where: str) -> TooManyFailures:
    """The error after the last attempt, with the cause of each."""
    causes = "; ".join(f"({number}) {entry.key}: {entry.detail}" for number, entry in enumerate(failed))
    return TooManyFailures(
        found=f"{len(failed)} attempts that all failed: {causes}",
        wanted="one that works within max_retries",
        consequence="mend the data, or raise max_retries",
        where=where,
    )
