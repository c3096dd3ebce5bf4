"""A plan in numbers that are few enough to draw."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.records import COSTS, LengthTable, PackPlan

STEPS = 240
"""Places along a chart; where there are more steps, neighbours are drawn as their mean."""
RANKS = 32
"""Ranks that have a line of their own."""
WIDE = 20
"""Values that differ by more than this factor are drawn over ranges that grow."""


def histogram(values: NDArray[Any], *, bins: int = 40) -> dict[str, list[float]]:
    """How many values fall into each of so many ranges.

    >>> histogram(np.array([1, 1, 2]), bins=2)
    {'edges': [1.0, 1.5, 2.0], 'counts': [2, 1]}
    """
    if not len(values):
        return {"edges": [], "counts": []}
    low, high = float(values.min()), float(values.max())
    if low == high:
        return {"edges": [low, high], "counts": [len(values)]}
    edges: Any = bins
    if low > 0 and high / low > WIDE:
        edges = np.geomspace(low, high, bins + 1)
        edges[0], edges[-1] = low, high  # rounding must not put the ends outside
    counts, found = np.histogram(values, bins=edges)
    return {"edges": [round(edge, 4) for edge in found.tolist()], "counts": counts.tolist()}


def doubling(values: NDArray[np.int64]) -> dict[str, list[int]]:
    """How many whole values are 0, 1, 2 to 3, 4 to 7 and so on: most packs lack a few tokens, and some lack many.

    >>> doubling(np.array([0, 0, 1, 2, 3, 5]))
    {'edges': [0, 1, 2, 4, 8], 'counts': [2, 1, 2, 1]}
    """
    if not len(values):
        return {"edges": [], "counts": []}
    edges = [0, *(1 << bit for bit in range(int(values.max()).bit_length() + 1))]
    return {"edges": edges, "counts": np.histogram(values, bins=edges)[0].tolist()}


def plan_charts(plan: PackPlan, lengths: LengthTable) -> dict[str, Any]:
    """Everything that is drawn of a plan."""
    every = lengths.tokens[lengths.tokens > 0]
    return {
        "room": doubling(plan.pack_size - plan.tokens),
        "lengths": histogram(every.astype(np.int64)),
        "work": work_over_steps(plan),
    }


def work_over_steps(plan: PackPlan) -> dict[str, Any]:
    """The work of each rank over the steps, in parts of the mean: by kind, and all of it.

    `least` and `most` are those of the ranks of a step; `ranks` has a line for each, where they are few.
    """
    costs = plan.costs.astype(np.float64)
    kinds = {"all": costs.sum(axis=1), **{name: costs[:, column] for column, name in enumerate(COSTS)}}
    charts = {name: _work(cost[plan.order]) for name, cost in kinds.items() if cost.any()}
    return {"steps": len(plan.order), "kinds": charts}


def _work(cost: NDArray[np.float64]) -> dict[str, Any]:
    """[steps, ranks] → the same over at most `STEPS` places."""
    cost = cost / cost.mean()
    boundaries = np.unique(np.linspace(0, len(cost), min(STEPS, len(cost)) + 1).astype(int))
    width = np.diff(boundaries)

    def mean(values: NDArray[np.float64]) -> list[Any]:
        shrunk: list[Any] = (np.add.reduceat(values, boundaries[:-1], axis=0).T / width).round(4).tolist()
        return shrunk

    lines = mean(cost) if cost.shape[1] <= RANKS else []
    return {"mean": mean(cost.mean(axis=1)), "least": mean(cost.min(axis=1)), "most": mean(cost.max(axis=1)),
            "ranks": lines}  # fmt: skip
