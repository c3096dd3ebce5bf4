"""Packs → (step, rank): alike in cost within a step, random from step to step. A name chooses the way.

By default packs are sorted by vision and cut into bands; each band is sorted by attention, every other one backwards,
so that neighbours stay neighbours where one band ends and the next begins. Then a step takes `world_size` in a row.

    vision ↑   ┌──────────────────┐
      band 3   │ → → → → → → → ↓  │      few bands: alike in attention, less so in vision
      band 2   │ ↓ ← ← ← ← ← ← ←  │      many bands: the other way round
      band 1   │ → → → → → → → →  │
               └──────────────────┘ attention →

How many bands are best depends on the corpus, so a handful of numbers is tried and the best is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lading.plan.costs import straggler_factor

Group = Callable[[NDArray[np.float32], int], NDArray[np.int64]]


def by_cost(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers by the sum of their costs: the best that one number can do.

    >>> by_cost(np.array([[3.0, 0, 0], [1, 0, 0], [1, 1, 0]]), 1).tolist()
    [0, 2, 1]
    """
    return np.argsort(-costs.sum(axis=1), kind="stable")


def by_vision(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers by what they cost the vision tower alone.

    >>> by_vision(np.array([[3.0, 0, 1], [1, 0, 2]]), 1).tolist()
    [1, 0]
    """
    return np.argsort(-costs[:, 2], kind="stable")


def shuffled(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers as they come, in random order: what a sampler does that knows nothing of work."""
    return np.arange(len(costs))


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


PLACINGS: dict[str, Group] = {
    "balanced": snake_order,
    "cost_sorted": by_cost,
    "vt_sorted": by_vision,
    "shuffled": shuffled,
}
"""(costs [packs, 3], world size) → all pack numbers, those of a step side by side."""

SLICE = 1 << 17
"""Packs that are grouped together: enough for any balance, few enough for the cache."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Placed:
    """Law: every pack stands in `order` once, and `repeated` places at the end of the last step stand again."""

    order: NDArray[np.int64]
    """[steps, world_size]"""
    repeated: int


def order_packs(
    costs: NDArray[np.float32], *, world_size: int, random: np.random.Generator, placing: str = "balanced"
) -> Placed:
    """Place packs on (step, rank).

    Where packs run out, the last step is filled with the packs nearest to those in it, so that ranks stay in step and
    nothing is left out. Which packs are left for it is chance.

    >>> costs = np.array([[1.0, 0, 0], [9, 0, 0], [1.1, 0, 0], [9.1, 0, 0], [5, 0, 0]])
    >>> placed = order_packs(costs, world_size=2, random=np.random.default_rng(0), placing="cost_sorted")
    >>> placed.order.tolist(), placed.repeated
    ([[2, 0], [4, 1], [3, 1]], 1)
    """
    packs = random.permutation(len(costs))
    size = max(1, SLICE // world_size) * world_size
    slices = [packs[start : start + size] for start in range(0, len(packs), size)]
    runs = [own[PLACINGS[placing](costs[own], world_size)] for own in slices]
    over = len(packs) % world_size
    last = np.zeros((0, world_size), dtype=np.int64)
    if over:
        start = int(random.integers(len(runs[-1]) // world_size + 1)) * world_size
        last = _filled(runs[-1], start, over, world_size)[None]
        runs[-1] = np.delete(runs[-1], np.s_[start : start + over])
    blocks = np.concatenate([np.zeros(0, dtype=np.int64), *runs]).reshape(-1, world_size)
    shuffled_blocks = random.permuted(random.permutation(blocks, axis=0), axis=1)
    return Placed(order=np.concatenate([shuffled_blocks, last]), repeated=world_size - over if over else 0)


def order_random(seed: int, epoch: int, world_size: int, segment: int = 0) -> np.random.Generator:
    """The chance by which packs are placed: whoever lays out a segment of an epoch for so many ranks has the same."""
    return np.random.default_rng([seed, epoch, segment, world_size])


def _filled(run: NDArray[np.int64], start: int, over: int, world_size: int) -> NDArray[np.int64]:
    """The last step: `over` packs of a run, then those nearest to them in it; where there are too few, all again."""
    wanted = world_size - over
    before, behind = run[:start][::-1], run[start + over :]
    both = min(len(before), len(behind))
    nearest = np.concatenate([np.stack([before[:both], behind[:both]], axis=1).ravel(), before[both:], behind[both:]])
    own = run[start : start + over]
    return np.concatenate([own, np.resize(np.concatenate([nearest, own]), wanted)])
