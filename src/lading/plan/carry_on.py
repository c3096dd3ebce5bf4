"""What is left of an epoch, for any number of ranks.

An epoch is trained in segments: so many steps with so many ranks. Which packs a segment has behind it follows from
the plan alone, so that its numbers are all that must be remembered:

    12 packs, 4 ranks, stopped after step 1     packs of the first row done        [(4, 1)]
    carried on with 2 ranks, stopped after 2    8 packs left, in 4 steps of two    [(4, 1), (2, 2)]
    carried on with 3 ranks                     4 packs left, in 2 steps of three, two of the places repeats
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading import plain
from lading.errors import ConfigError
from lading.plan.order import Placed, order_packs, order_random
from lading.records import PackPlan

MOST_RANKS = 10_000_000
"""More ranks than any run has: a number beyond is damage, and an order for it would take all memory."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EpochSegment:
    """Steps that were trained with one number of ranks."""

    world_size: int
    steps: int

    @classmethod
    def from_dict(cls, value: Any, place: str = "a stretch") -> EpochSegment:
        """From plain values; `ConfigError` where they are none of a stretch's."""
        known = plain.named(value, place, ("world_size", "steps"))
        return cls(
            world_size=plain.whole(known["world_size"], f"{place}: world_size", least=1, most=MOST_RANKS),
            steps=plain.whole(known["steps"], f"{place}: steps"),
        )


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Schedule:
    """The segment that is being trained. Law: packs before it and packs in its order are all packs of the plan."""

    order: NDArray[np.int64]
    """[steps, world_size] pack numbers of this segment, from its beginning."""
    repeated: int
    """How many places at the end of its last step hold a repeat."""
    before: NDArray[np.int64]
    """Packs that earlier segments trained on; one that was repeated stands as often."""

    @property
    def world_size(self) -> int:
        """Ranks of this segment."""
        return int(self.order.shape[1])

    def last_step(self) -> NDArray[np.int64]:
        """The packs of a last step that is short of packs, without the repeats; none where it is whole."""
        if not self.repeated:
            return self.order[:0].ravel()
        own: NDArray[np.int64] = self.order[-1, : self.world_size - self.repeated]
        return own


def schedule(plan: PackPlan, segments: Sequence[EpochSegment]) -> Schedule:
    """The last of these segments, laid out. Its own steps do not matter: it may be anywhere.

    >>> from lading.plan import make_plan
    >>> from lading.records import LengthTable
    >>> plan = make_plan(LengthTable.of(tokens=np.full(12, 9)), pack_size=10, world_size=4)
    >>> left = schedule(plan, [EpochSegment(world_size=4, steps=1), EpochSegment(world_size=3, steps=0)])
    >>> sorted([*left.before.tolist(), *set(left.order.ravel().tolist())]) == list(range(12)), left.repeated
    (True, 1)
    """
    before = np.zeros(0, dtype=np.int64)
    for number, segment in enumerate(segments):
        placed = _placed(plan, before, number, segment.world_size)
        if number == len(segments) - 1:
            return Schedule(order=placed.order, repeated=placed.repeated, before=before)
        if not 0 <= segment.steps <= len(placed.order):
            raise ConfigError(
                found=f"a segment of {segment.steps} steps with {segment.world_size} ranks",
                wanted=f"at most {len(placed.order)}, which is all that was left",
                where="cursor",
            )
        before = np.concatenate([before, placed.order[: segment.steps].ravel()])
    raise ConfigError(found="no segment", wanted="at least one", where="cursor")


def _placed(plan: PackPlan, before: NDArray[np.int64], number: int, world_size: int) -> Placed:
    if not number and world_size == plan.world_size:
        return Placed(order=plan.order, repeated=plan.repeated)
    left = np.setdiff1d(np.arange(len(plan)), before)
    random = order_random(plan.seed, plan.epoch, world_size, number)
    placed = order_packs(plan.costs[left], world_size=world_size, random=random, placing=plan.placing)
    return Placed(order=left[placed.order], repeated=placed.repeated)
