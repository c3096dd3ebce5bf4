"""Packs of a step alike in vision and in attention at once.

Packs are sorted by vision and cut into strips; each strip is sorted by attention, every other one backwards, so that
neighbours stay neighbours where one strip ends and the next begins. Then a step takes `world_size` packs in a row.

    vision ↑   ┌──────────────────┐
      strip 3  │ → → → → → → → ↓  │      few strips: alike in attention, less so in vision
      strip 2  │ ↓ ← ← ← ← ← ← ←  │      many strips: the other way round
      strip 1  │ → → → → → → → →  │
               └──────────────────┘ attention →

How many strips are best depends on the corpus, so a handful of numbers is tried and the best is kept.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lading.plan.balance import straggler_factors

TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Numbers of strips."""


def strips(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers, `world_size` in a row alike in everything.

    >>> costs = np.array([[1.0, 1, 0], [1, 9, 5], [1, 9, 0], [1, 1, 5], [1, 9, 0], [1, 9, 5], [1, 1, 5], [1, 1, 0]])
    >>> strips(costs, 2).reshape(-1, 2).tolist()
    [[2, 4], [1, 5], [0, 7], [3, 6]]
    """
    steps = len(costs) // world_size
    by_vision = np.lexsort((costs[:, 1], costs[:, 2]))
    ways = [_snake(costs, by_vision, world_size, count) for count in TRIED if count <= max(1, steps)]
    return min(ways, key=lambda way: _excess(costs, way, world_size))


def _snake(costs: NDArray[np.float32], by_vision: NDArray[np.int64], world_size: int, count: int) -> NDArray[np.int64]:
    borders = np.round(np.linspace(0, len(costs) // world_size, count + 1)).astype(np.int64) * world_size
    borders[-1] = len(costs)
    pieces = []
    for number, (start, stop) in enumerate(pairwise(borders)):
        strip = by_vision[start:stop]
        rising = 1.0 if number % 2 else -1.0
        pieces.append(strip[np.argsort(rising * costs[strip, 1], kind="stable")])
    return np.concatenate(pieces)


def _excess(costs: NDArray[np.float32], way: NDArray[np.int64], world_size: int) -> float:
    """How far a way is from perfect: in all work, in attention and in vision, each counted alike."""
    whole = len(way) // world_size * world_size
    factors = straggler_factors(costs, way[:whole].reshape(-1, world_size))
    return factors.work + factors.attention + factors.vision
