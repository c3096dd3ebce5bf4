"""Packs → (step, rank): alike in cost within a step, random from step to step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_packs(
    costs: NDArray[np.float64], *, world_size: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """[steps, world_size] pack numbers, and how many places of the last step hold a repeat.

    Packs are sorted by cost and dealt out in blocks of `world_size`, so that the ranks of a step get neighbours; the
    blocks are then shuffled, and the packs of a block among the ranks. Where packs run out, the last block is filled
    with repeats of its own packs, so that ranks stay in step and nothing is left out.

    >>> costs = np.array([1.0, 9.0, 1.1, 9.1, 5.0])
    >>> order, repeated = order_packs(costs, world_size=2, random=np.random.default_rng(0))
    >>> sorted(map(sorted, order.tolist())), repeated
    ([[0, 0], [1, 3], [2, 4]], 1)
    """
    packs = len(costs)
    steps = -(-packs // world_size)
    repeated = steps * world_size - packs
    by_cost = np.argsort(-costs, kind="stable")
    if repeated:
        last = by_cost[(steps - 1) * world_size :]
        by_cost = np.concatenate([by_cost, np.resize(last, repeated)])
    blocks = by_cost.reshape(steps, world_size)
    short, full = blocks[steps - 1 :], blocks[: steps - 1]
    if not repeated:
        short, full = blocks[:0], blocks
    # The step with repeats stays last: whoever stops a step early has seen everything once.
    shuffled = np.concatenate([random.permutation(full, axis=0), short])
    return random.permuted(shuffled, axis=1).astype(np.int64), repeated
