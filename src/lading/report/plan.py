"""A plan → plain values for the page: charts, the packs of the first steps, and the extremes of all packs."""

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
PACKS = 10_000
"""Packs in the page."""
ENDS = 50
"""Of each thing that packs are sorted by, how many from both ends of the whole plan are among them."""
DOCUMENTS = 60_000
"""Documents that the page names, those of the extreme packs first."""

Plain = dict[str, Any]


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
    """The work of each rank over the steps, as a share of the mean: by kind, and all of it.

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


def pack_data(plan: PackPlan, lengths: LengthTable, *, packs: int = PACKS, documents: int = DOCUMENTS) -> Plain:
    """What the page shows of packs, in the order of training."""
    extreme = extremes(plan, min(ENDS, packs // 16))
    numbers, places = _chosen(plan, extreme, packs)
    steps, ranks = np.divmod(places, plan.world_size)
    sizes = np.diff(plan.starts)[numbers]
    named = _named(numbers, sizes, extreme, documents)
    mean = plan.costs.mean(axis=0, dtype=np.float64).tolist() if len(plan) else [0.0, 0.0, 0.0]
    listed = [
        _pack(plan, lengths, number, own) | {"step": step, "rank": rank}
        for number, step, rank, own in zip(
            numbers.tolist(), steps.tolist(), ranks.tolist(), named.tolist(), strict=True
        )
    ]
    return {"size": plan.pack_size, "total": len(plan), "ranks": plan.world_size, "mean": mean, "list": listed}


def extremes(plan: PackPlan, count: int) -> NDArray[np.int64]:
    """The packs that are least and most filled, and those that cost least and most of each kind.

    >>> from lading.plan import make_plan
    >>> plan = make_plan(LengthTable.of(tokens=np.array([9, 9, 9, 2])), pack_size=9)
    >>> 2 in plan.tokens[extremes(plan, 1)]
    True
    """
    if len(plan) <= 2 * count:
        return np.arange(len(plan))
    ends = [0, *range(count), *range(len(plan) - count, len(plan))]
    ranked = [np.argpartition(values, ends)[ends] for values in (plan.tokens, *plan.costs.T)]
    return np.unique(np.concatenate(ranked))


def _chosen(plan: PackPlan, extreme: NDArray[np.int64], most: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Packs and where each stands first in the order, which may repeat some in its last step."""
    order = plan.order.ravel()
    if len(plan) <= most:
        places = np.arange(len(order))
    else:
        among = np.isin(order, extreme)
        places = np.union1d(np.flatnonzero(~among)[: most - len(extreme)], np.flatnonzero(among))
    numbers, first = np.unique(order[places], return_index=True)
    by_place = np.argsort(first)
    return numbers[by_place], places[first[by_place]]


def _named(
    numbers: NDArray[np.int64], sizes: NDArray[np.int64], extreme: NDArray[np.int64], documents: int
) -> NDArray[np.bool_]:
    """The packs whose documents are named, as many as fit into the page."""
    ranked = np.argsort(~np.isin(numbers, extreme), kind="stable")
    named = np.zeros(len(numbers), dtype=bool)
    named[ranked] = np.cumsum(sizes[ranked]) <= documents
    return named


def _pack(plan: PackPlan, lengths: LengthTable, number: int, named: bool) -> Plain:
    members = plan.pack(number)
    tokens, labels, source = lengths.tokens[members], lengths.label_tokens[members], lengths.source[members]
    shares = np.bincount(source, weights=tokens)
    plain: Plain = {
        "number": number,
        "count": len(members),
        "tokens": int(plan.tokens[number]),
        "labels": int(labels.sum()),
        "sources": [[place, int(shares[place])] for place in np.flatnonzero(shares).tolist()],
        "visual": int(lengths.visual_tokens[members].sum()),
        "audio": int(lengths.audio_tokens[members].sum()),
        "costs": [float(f"{cost:.4g}") for cost in plan.costs[number].tolist()],
    }
    if named:
        plain["documents"] = np.stack([members, tokens, labels, source], 1).tolist()
    return plain
