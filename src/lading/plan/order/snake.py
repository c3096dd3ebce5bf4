"""Packs of a step alike in vision and in attention at once.

Packs are sorted by vision and cut into bands; each band is sorted by attention, every other one backwards, so that
neighbours stay neighbours where one band ends and the next begins. Then a step takes `world_size` packs in a row.

    vision ↑   ┌──────────────────┐
      band 3  │ → → → → → → → ↓  │      few bands: alike in attention, less so in vision
      band 2  │ ↓ ← ← ← ← ← ← ←  │      many bands: the other way round
      band 1  │ → → → → → → → →  │
               └──────────────────┘ attention →

How many bands are best depends on the corpus, so a handful of numbers is tried and the best is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lading.plan.balance import straggler_factor

TRIED = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Numbers of bands."""


def snake_order(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers, `world_size` in a row alike in everything.

    >>> costs = np.array([[1.0, 1, 0], [1, 9, 5], [1, 9, 0], [1, 1, 5], [1, 9, 0], [1, 9, 5], [1, 1, 5], [1, 1, 0]])
    >>> snake_order(costs, 2).reshape(-1, 2).tolist()
    [[5, 1], [4, 2], [6, 3], [7, 0]]
    """
    steps = len(costs) // world_size
    if world_size == 1 or not steps:
        return np.arange(len(costs))  # There is nobody to be alike with.
    by_vision, by_attention = np.lexsort((costs[:, 1], costs[:, 2])), np.lexsort((costs[:, 2], costs[:, 1]))
    ways = [_snake(by_vision, by_attention, world_size, count) for count in TRIED if count <= steps]
    kinds = [costs.sum(axis=1, dtype=np.float64), *costs[:, 1:].T.astype(np.float64, order="C")]
    return min(ways, key=lambda way: _excess(kinds, way[: steps * world_size], world_size))


def _snake(
    by_vision: NDArray[np.int64], by_attention: NDArray[np.int64], world_size: int, count: int
) -> NDArray[np.int64]:
    boundaries = np.round(np.linspace(0, len(by_vision) // world_size, count + 1)).astype(np.int64) * world_size
    boundaries[-1] = len(by_vision)
    band = np.empty(len(by_vision), dtype=np.uint8)
    band[by_vision] = np.repeat(np.arange(count, dtype=np.uint8), np.diff(boundaries))
    # All bands at once: packs that are sorted by attention stay so when they are sorted by band.
    way = by_attention[np.argsort(band[by_attention], kind="stable")]
    for start, stop in list(pairwise(boundaries.tolist()))[::2]:
        way[start:stop] = way[start:stop][::-1].copy()
    return way


def _excess(kinds: Sequence[NDArray[np.float64]], way: NDArray[np.int64], world_size: int) -> float:
    """How far a way is from perfect: in all work, in attention, in vision. Squared: the worst of them counts most."""
    return sum((straggler_factor(kind[way].reshape(-1, world_size)) - 1) ** 2 for kind in kinds)
