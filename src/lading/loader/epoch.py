"""One epoch of this rank: its plan, how far it is trained, and its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import Reason, SkipSample
from lading.ledger import Ledger, too_long
from lading.lengths.fingerprint import Fingerprints
from lading.loader.config import LoaderConfig
from lading.loader.ranks import Ranks
from lading.loader.state import Cursor
from lading.plan.carry_on import EpochSegment, Schedule, schedule
from lading.records import Batch, Dropped, LengthTable, PackPlan
from lading.samples.samples import Samples


class Epoch:
    """Law: what the ledger says was trained is what the steps up to `step` hold, less what failed in them.

    With a cursor, the epoch stands where it points: a segment with as many ranks goes on, with others a new one begins.
    """

    def __init__(
        self,
        plan: PackPlan,
        *,
        samples: Samples,
        lengths: LengthTable,
        config: LoaderConfig,
        fingerprints: Fingerprints,
        cursor: Cursor | None = None,
    ) -> None:
        self.plan, self.samples, self.config, self._fingerprints = plan, samples, config, fingerprints
        here = EpochSegment(world_size=config.world_size, steps=0)
        earlier = cursor.segments if cursor else ()
        goes_on = bool(earlier) and earlier[-1].world_size == config.world_size
        self._before = earlier[:-1] if goes_on else earlier
        self._schedule: Schedule = schedule(plan, [*self._before, here])
        self.step = earlier[-1].steps if goes_on else 0
        """Steps of this segment that are done."""
        if cursor and not 0 <= self.step <= len(self._schedule.order):
            raise cursor.beyond(len(self._schedule.order))
        self._over = cursor is not None and cursor.over
        if cursor and cursor.over and len(self._leaves_out) >= cursor.segments[-1].world_size:
            raise cursor.not_over(len(self._leaves_out))
        self.ledger: Ledger = open_ledger(samples, lengths, plan)
        self.failed: list[Dropped] = []
        self._write_past(cursor.dropped if cursor else ())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        # A ledger travels without the corpus that names its samples.
        self.ledger.key = self.samples.corpus.key

    @cached_property
    def _leaves_out(self) -> NDArray[np.int64]:
        """Packs that this epoch does not train on: those of a last step short of packs, if they are to be dropped."""
        left = self._schedule.order[self.step :]
        if self._over:
            own = left.ravel()
            return own[: max(0, own.size - self._schedule.repeated)]
        return self._schedule.last_step() if len(left) and self.config.last_step == "drop" else left[:0].ravel()

    @property
    def order(self) -> NDArray[np.int64]:
        """[steps, ranks] packs of this segment that were or will be trained on."""
        if self._over:
            return self._schedule.order[: self.step]
        return self._schedule.order[:-1] if len(self._leaves_out) else self._schedule.order

    @cached_property
    def _unmoved(self) -> Cursor:
        """The cursor of this plan, for what does not change from step to step."""
        return Cursor.of(self.plan, self._fingerprints.by_source)

    def cursor(self) -> Cursor:
        """Where the run stands."""
        own = EpochSegment(world_size=self.config.world_size, steps=self.step)
        return replace(
            self._unmoved,
            segments=(*self._before, own),
            over=self.step >= len(self.order),
            dropped=tuple(self.failed),
        )

    def _write_past(self, dropped: Iterable[Dropped]) -> None:
        """What was done before. The first rank takes over earlier segments for all, so that ledgers can be merged."""
        if self.config.rank == 0:
            before = self._schedule.before
            self._trained(np.unique(before) if self.config.validation else before)
        done = self._own()[: self.step]
        self._trained(done[done < len(self.plan)])
        for entry in dropped:
            self._failed(entry)
        for entry in last_step_entries(self.samples, self.plan, self._leaves_out, self.config.world_size):
            self.ledger.dropped(entry)

    def _trained(self, packs: NDArray[np.int64]) -> None:
        if len(packs):
            self.ledger.trained(np.concatenate([self.plan.pack(number) for number in packs.tolist()]))

    def _failed(self, entry: Dropped) -> None:
        self.ledger.dropped(entry)
        # A pack that is repeated in the last step fails again; that is no further failure.
        if all(entry.key.index != known.key.index for known in self.failed):
            self.failed.append(entry)

    def left(self) -> list[int]:
        """Packs that this rank has before it, by the numbers that `PackDataset` takes."""
        left: list[int] = self._own()[self.step :].tolist()
        return left

    def _own(self) -> NDArray[np.int64]:
        """Packs of this rank, step by step. One that fills the last step of validation has no labels: its number is
        above those of the plan.
        """
        own = self.order[:, self.config.rank].astype(np.int64)
        whole = len(self.order) == len(self._schedule.order)
        fills = self._schedule.repeated > self.config.world_size - 1 - self.config.rank
        if self.config.validation and whole and fills:
            own[-1:] += len(self.plan)
        return own

    def broken_off(self) -> str:
        """What to say where a pass goes on with another: who begins it may not know that there was one."""
        return (
            f"the last pass ended behind {self.step} of {len(self.order)} steps of epoch {self.config.epoch}; this one"
            " goes on there, so that nothing is left out (set_epoch begins an epoch at its first batch)"
        )

    def nothing_left(self) -> str:
        """What to say of a pass behind a cursor to the end: who counts epochs by their passes would lose one."""
        return (
            f"the state that was loaded is that of the end of epoch {self.config.epoch}: this pass has no batches, the"
            " next one has (set_epoch begins an epoch at its first batch)"
        )

    def account(self, batch: Batch) -> None:
        """A batch was handed out."""
        self.step = min(self.step + self.config.batch_size, len(self.order))
        self.ledger.trained([document.key.index for row in batch.rows for document in row])
        for entry in batch.dropped:
            self._failed(entry)


def open_ledger(samples: Samples, table: LengthTable, plan: PackPlan) -> Ledger:
    """The ledger before the first step: what could not be counted, and what no pack can hold, is already in it.

    Under a strict policy an over-long sample is raised instead.
    """
    ledger = Ledger.open(table)
    ledger.key = samples.corpus.key
    for index in plan.too_long.tolist():
        entry = too_long(samples.corpus.key(index), int(table.tokens[index]), plan.pack_size)
        if samples.policy.strict:
            raise SkipSample(entry.reason, found=entry.detail.removeprefix("found "), where=entry.key.where)
        ledger.dropped(entry)
    return ledger


def last_step_entries(samples: Samples, plan: PackPlan, packs: NDArray[np.int64], world_size: int) -> Iterator[Dropped]:
    """The samples of packs that are left out of a last step, each by name."""
    detail = f"found {len(packs)} packs left for the last step; wanted {world_size}, one for each rank"
    for number in packs.tolist():
        for index in plan.pack(number).tolist():
            yield Dropped(key=samples.corpus.key(index), reason=Reason.LAST_STEP, detail=detail)


def merged_ledger(ledger: Ledger, ranks: Ranks | None = None) -> Ledger:
    """What the ledgers of all ranks say together; every process of their group must call this, each gets it all.

    Of processes that are fed the same (those of one `rank`), the first one's counts.
    """
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return ledger
    own = (distributed.get_rank() if ranks is None else ranks.rank, ledger)
    group = None if ranks is None else ranks.group
    gathered: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(gathered, own, group=group)
    ledgers: dict[int, Ledger] = {}
    for rank, one in gathered:
        ledgers.setdefault(rank, one)
    first, *others = ledgers.values()
    for other in others:
        first.merge(other)
    first.key = ledger.key
    return first
