"""Packs of a data set's samples, built when they are asked for, in the order of an epoch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.distributed as distributed
from numpy.typing import NDArray

from lading.errors import ConfigError, Reason, SkipSample
from lading.ledger import Ledger
from lading.records import Dropped, SampleKey
from lading.vlm.costs import name_of
from lading.vlm.media_order import alike_bins, block_order
from lading.vlm.padded_batches import sample_counts
from lading.vlm.replacement import Replacing
from lading.vlm.replacement_log import ReplacementLog
from lading.vlm.sample_inputs import as_inputs
from lading.vlm.tokenising import tokenising

logger = logging.getLogger(__name__)

Sample = dict[str, Any]


class PackInputs(Sample):
    """The tensors of one pack by name, and the name of the family they are made for: text alone does not show it."""

    family: str | None = None


class ShiftedSamples(Replacing):
    """The samples under the packs, each made ready by `prepare`; one that fails is replaced, by name.

    Without a ledger of a whole corpus they have one of their own, numbered by their places.
    """

    def __init__(
        self, dataset: Any, prepare: Callable[[Sample], Sample], *, max_retries: int, seed: int, ledger: Ledger | None
    ) -> None:
        self.prepare, self.by_place = prepare, ledger is None
        super().__init__(dataset, max_retries=max_retries, seed=seed, ledger=ledger or _ledger(dataset))

    def key(self, place: int) -> SampleKey:
        """The name of a sample."""
        return name_of(self.dataset, place) if self.by_place else super().key(place)

    def fetch(self, index: int) -> Sample:
        """The sample itself, not a stand-in that its data set would draw: that one may be longer than planned."""
        if (own := tokenising(self.dataset)) is not None:
            encoded = own.encoded(index)
            inputs = as_inputs(encoded)
            inputs.update(sample_counts(encoded.document, own.encoder.facts.family.table))
            return self.prepare(inputs)
        sample = self.dataset.fetch(index) if isinstance(self.dataset, Replacing) else self.dataset[index]
        return self.prepare(sample)

    def set_epoch(self, epoch: int, ledger: Ledger | None = None) -> None:
        """Start another epoch, with another ledger where it is this object's own."""
        super().set_epoch(epoch, ledger or (_ledger(self.dataset) if self.by_place else None))


class _PackLog(ReplacementLog):
    """Writes what became of a pack under the names of its samples."""

    def __init__(self, samples: ReplacementLog, keys: Callable[[int], list[SampleKey]]) -> None:
        super().__init__(None)
        self.samples, self.keys = samples, keys

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "samples": self.samples, "keys": self.keys}

    def write(self, entry: Dropped) -> None:
        by = tuple(key for pack in entry.by for key in self.keys(pack.index))
        for key in self.keys(entry.key.index):
            self.samples.write(replace(entry, key=key, by=by))


class PackedSamples(Replacing):
    """Packs of at most `pack_size` tokens; `bins` are the samples of each, and `build` makes a pack of them.

    A sample without room in its pack is left over, by name; a pack without any sample is replaced by another pack.
    `left_out` are the samples that no bin has, named by their places.
    """

    def __init__(
        self,
        samples: ShiftedSamples,
        bins: Sequence[Sequence[int]],
        pack_size: int,
        build: Callable[[list[Sample]], Sample],
        *,
        left_out: Sequence[Dropped] = (),
    ) -> None:
        _check(bins, len(samples), pack_size)
        super().__init__(bins, max_retries=samples.max_retries, seed=samples.seed, ledger=None)
        self.samples, self.bins, self.pack_size, self.build = samples, bins, pack_size, build
        self.left_out = tuple(left_out)
        self.log = _PackLog(samples.log, self._keys)
        # Shared with workers, as the epoch is. 0: the order in which the bins were given.
        self._world_size = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]  # torch left it untyped
        self._note_left_out()

    def fetch(self, index: int) -> Sample:
        """Build one pack of the samples that fit; `SkipSample` where none does."""
        parts: list[Sample] = []
        room = self.pack_size
        for place in self._members(index):
            sample, used = self.samples.obtain(place)
            tokens = len(sample["input_ids"])
            if tokens > room:
                self._leave_over(place, f"found {tokens} tokens of sample {used}; wanted at most {room}, the room left")
                continue
            parts.append(sample)
            room -= tokens
        if not parts:
            raise SkipSample(Reason.TOO_LONG, found="no sample that fits into a pack", where=self.key(index).where)
        return self.build(parts)

    def key(self, place: int) -> SampleKey:
        """The name of a pack."""
        return SampleKey(index=place, source="pack", where=f"pack of samples {list(self._members(place))}")

    def set_epoch(self, epoch: int, ledger: Ledger | None = None, *, world_size: int | None = None) -> None:
        """Shuffle for an epoch, in blocks of `world_size` packs: by default, of as many as there are ranks."""
        if world_size is None:
            running = distributed.is_available() and distributed.is_initialized()
            world_size = distributed.get_world_size() if running else 1
        block_order(0, world_size=world_size, seed=self.seed, epoch=epoch)
        self._world_size.fill_(world_size)
        self._epoch.fill_(epoch)
        self.samples.set_epoch(epoch, ledger)
        self._note_left_out()

    def account(self, handed: Iterable[int] = ()) -> Ledger:
        """The ledger of the samples; `handed` are the packs that a sampler gave out."""
        return self.samples.log.settle(key.index for pack in handed for key in self._keys(pack))

    def left_over(self) -> list[list[int]]:
        """Bins of the samples that this epoch's packs had no room for, by their true lengths."""
        names = {self.samples.key(place).index: place for members in self.bins for place in members}
        indices = [
            entry["index"]
            for entry in self.account().entries()
            if entry["reason"] == Reason.TOO_LONG and entry["fate"] == "dropped"
        ]
        places = [place for index, place in names.items() if index in indices]
        lengths = {place: len(self.samples.obtain(place)[0]["input_ids"]) for place in places}
        fitting = [place for place in places if lengths[place] <= self.pack_size]
        sizes = [lengths[place] for place in fitting]
        return [[fitting[at] for at in members] for members in alike_bins(sizes, self.pack_size, [0] * len(sizes))]

    def _members(self, place: int) -> Sequence[int]:
        world_size = int(self._world_size)
        if not world_size:
            return self.bins[place]
        return self.bins[int(_order(len(self.bins), world_size, self.seed, self.epoch)[place])]

    def _keys(self, place: int) -> list[SampleKey]:
        return [self.samples.key(sample) for sample in self._members(place)]

    def _leave_over(self, place: int, detail: str) -> None:
        entry = Dropped(key=self.samples.key(place), reason=Reason.TOO_LONG, detail=detail)
        logger.warning("left over %s: %s", entry.key, detail)
        self.samples.log.write(entry)

    def _note_left_out(self) -> None:
        for entry in self.left_out:
            self.samples.log.write(replace(entry, key=self.samples.key(entry.key.index)))


@lru_cache(maxsize=4)
def _order(packs: int, world_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return block_order(packs, world_size=world_size, seed=seed, epoch=epoch)


def _ledger(dataset: Any) -> Ledger:
    return Ledger(sources=(type(dataset).__name__,), source=np.zeros(len(dataset), dtype=np.int32))


def _check(bins: Sequence[Sequence[int]], samples: int, pack_size: int) -> None:
    if pack_size < 1:
        raise ConfigError(found=f"pack_size {pack_size}", wanted="a positive number of tokens", where="packing")
    for number, members in enumerate(bins):
        if not len(members) or not 0 <= min(members) <= max(members) < samples:
            raise ConfigError(
                found=f"bin {number} of samples {list(members)[:10]}",
                wanted=f"at least one, and numbers from 0 to {samples - 1}",
                where="packing",
            )
