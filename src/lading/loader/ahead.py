"""Batches in their order, each begun early enough: a pack of video does not hold up the packs of text around it.

One `DataLoader` of many workers deals batches round and round. Behind a pack that takes ten times as long, the next
ones of its worker wait, and the training step with them. Here every worker has a `DataLoader` of its own, and which
batches it makes is planned backwards, from when they are due: a heavy one keeps its worker free for the turns before
it, and what is due in the meantime goes to the others.

Batches are handed out in the order of the plan, whoever makes them, and no more of them wait than with one `DataLoader`
of as many workers: two for each.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import DataLoader

from lading.loader.reviving import Reviving
from lading.records import LengthTable, PackPlan

T = TypeVar("T")
Numbers = list[int]
"""The packs of one batch."""


def decoding_costs(table: LengthTable, plan: PackPlan) -> NDArray[np.float64]:
    """What each pack of a plan takes to be read and decoded: roughly, in microseconds, from what was counted.

    A pixel's share is in the visual tokens, which stand for about as many pixels in one family as in another. With a
    frame, those before it are decoded too that are not used.

    >>> from lading.plan import make_plan
    >>> table = LengthTable.of(tokens=np.array([900, 1000]), frames=np.array([4, 0]), videos=np.array([1, 0]))
    >>> decoding_costs(table, make_plan(table, pack_size=1000)).tolist()
    [2000.0, 33800.0]
    """
    if not len(plan):
        return np.zeros(0)
    pictures = 20.0 * table.visual_tokens + 1000.0 * table.images + 8000.0 * table.frames
    samples = 2.0 * table.tokens + 20.0 * table.audio_tokens + pictures
    costs: NDArray[np.float64] = np.add.reduceat(samples[plan.members], plan.starts[:-1])
    return costs


def share_out(costs: Sequence[float] | NDArray[np.float64], workers: int) -> list[int]:
    """Which worker makes each batch. They are dealt from the last to the first, each to whoever is then free longest.

    Time is counted in turns, at a pace at which the workers just keep up: here a cost of 1 takes 1.2 turns.

        turn            5      4     3     2     1     0
        cost            1      5     1     1     1     1
        given to        0      1     0     0     0     0
        who begins it   3.8   -2.0   1.8   0.6  -0.6  -1.8    at this turn, and so is free until then

    >>> share_out([1, 1, 1, 1, 5, 1], workers=2)
    [0, 0, 0, 0, 1, 0]
    >>> share_out([1, 1, 1, 1, 1, 1], workers=2)
    [1, 0, 1, 0, 1, 0]
    """
    pace = workers * len(costs) / (float(np.sum(costs)) or 1.0)
    # The turn from which on each worker is busy, negated: the first of the heap is the one who is free longest.
    busy = [(-float(len(costs)), worker) for worker in range(workers)]
    lanes = [0] * len(costs)
    for turn in reversed(range(len(costs))):
        since, worker = busy[0]
        lanes[turn] = worker
        heapq.heapreplace(busy, (max(since, -turn) + costs[turn] * pace, worker))
    return lanes


class Ahead(Generic[T]):
    """Iterates `batches` in their order, by a `DataLoader` for each lane, which `open_loader` makes of its share.

    A worker that dies is replaced; what the others have under way is not lost with it.
    """

    def __init__(
        self,
        open_loader: Callable[[int, list[Numbers]], DataLoader[Any]],
        batches: Sequence[Numbers],
        lanes: Sequence[int],
    ) -> None:
        self._open_loader, self._batches, self._lanes = open_loader, batches, lanes

    def __iter__(self) -> Iterator[T]:
        shares: dict[int, list[Numbers]] = {}
        for batch, lane in zip(self._batches, self._lanes, strict=True):
            shares.setdefault(lane, []).append(batch)
        # All of them begin now, not when their first batch is due.
        running = {lane: Reviving[T](partial(self._open_loader, lane), share) for lane, share in sorted(shares.items())}
        for lane in self._lanes:
            yield next(running[lane])
