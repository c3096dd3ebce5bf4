"""Which worker makes which batch, so that each is ready when it is due."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lading.records import LengthTable, PackPlan


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


def assign_workers(costs: Sequence[float] | NDArray[np.float64], workers: int) -> list[int]:
    """Which worker makes each batch. They are dealt from the last to the first, each to whoever is then free longest.

    Time is counted in turns, at a pace at which the workers just keep up: here a cost of 1 takes 1.2 turns.

        turn            5      4     3     2     1     0
        cost            1      5     1     1     1     1
        given to        0      1     0     0     0     0
        who begins it   3.8   -2.0   1.8   0.6  -0.6  -1.8    at this turn, and so is free until then

    >>> assign_workers([1, 1, 1, 1, 5, 1], workers=2)
    [0, 0, 0, 0, 1, 0]
    >>> assign_workers([1, 1, 1, 1, 1, 1], workers=2)
    [1, 0, 1, 0, 1, 0]
    """
    pace = workers * len(costs) / (float(np.sum(costs)) or 1.0)
    # The turn from which on each worker is busy, negated: the first of the heap is the one who is free longest.
    busy = [(-float(len(costs)), worker) for worker in range(workers)]
    assigned = [0] * len(costs)
    for turn in reversed(range(len(costs))):
        since, worker = busy[0]
        assigned[turn] = worker
        heapq.heapreplace(busy, (max(since, -turn) + costs[turn] * pace, worker))
    return assigned
