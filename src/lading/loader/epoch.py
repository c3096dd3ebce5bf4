"""One epoch as this rank lives it: the plan, where in it the run stands, and the books."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from lading.ledger import Ledger
from lading.loader.accounts import last_step_entries, open_books
from lading.loader.config import LoaderConfig
from lading.loader.samples import Samples
from lading.loader.state import Cursor
from lading.plan.carry_on import Schedule, Stretch, schedule
from lading.records import Batch, Dropped, LengthTable, PackPlan


class Epoch:
    """Law: what the ledger says was trained is what the steps up to `step` hold, less what failed in them."""

    def __init__(self, plan: PackPlan, *, samples: Samples, lengths: LengthTable, config: LoaderConfig) -> None:
        self.plan, self.samples, self.config = plan, samples, config
        self.ledger: Ledger = open_books(samples, lengths, plan)
        self.failed: list[Dropped] = []
        self.step = 0
        """Steps of this stretch that are done."""
        self._begin_stretch(())

    def _begin_stretch(self, before: Sequence[Stretch]) -> None:
        self._before = tuple(before)
        self._schedule: Schedule = schedule(self.plan, [*before, Stretch(world_size=self.config.world_size, steps=0)])
        if self.config.last_step == "drop":
            for entry in last_step_entries(self.samples, self.plan, self._schedule):
                self.ledger.dropped(entry)

    @property
    def order(self) -> NDArray[np.int64]:
        """[steps, ranks] packs of this stretch; a short last step is in it unless it is to be dropped."""
        short = bool(self._schedule.repeated) and self.config.last_step == "drop"
        return self._schedule.order[:-1] if short else self._schedule.order

    @cached_property
    def _fingerprinted(self) -> Cursor:
        return Cursor.of(self.plan, (), ())

    def cursor(self) -> Cursor:
        """Where the run stands."""
        own = Stretch(world_size=self.config.world_size, steps=self.step)
        return replace(self._fingerprinted, stretches=(*self._before, own), dropped=tuple(self.failed))

    def carry_on(self, cursor: Cursor) -> None:
        """Go to where a cursor points: a stretch with as many ranks goes on, with others a new one begins."""
        *before, last = cursor.stretches
        same = last.world_size == self.config.world_size
        self._begin_stretch(before if same else cursor.stretches)
        self.step = last.steps if same else 0
        if self.step > len(self._schedule.order) or self.step < 0:
            raise cursor.beyond(len(self._schedule.order))
        self._write_past(cursor.dropped)

    def _write_past(self, dropped: Iterable[Dropped]) -> None:
        """What was done before. The first rank takes over earlier stretches for all, so that ledgers can be merged."""
        if self.config.rank == 0:
            self._trained(self._schedule.before)
        self._trained(self.order[: self.step, self.config.rank])
        for entry in dropped:
            self.ledger.dropped(entry)
            self.failed.append(entry)

    def _trained(self, packs: NDArray[np.int64]) -> None:
        if len(packs):
            self.ledger.trained(np.concatenate([self.plan.pack(number) for number in packs.tolist()]))

    def left(self) -> list[int]:
        """Packs that this rank has before it."""
        own: list[int] = self.order[self.step :, self.config.rank].tolist()
        return own

    def account(self, batch: Batch) -> None:
        """A batch was handed out."""
        self.step = min(self.step + self.config.batch_size, len(self.order))
        self.ledger.trained([document.key.index for row in batch.rows for document in row])
        for entry in batch.dropped:
            self.ledger.dropped(entry)
        self.failed += batch.dropped
