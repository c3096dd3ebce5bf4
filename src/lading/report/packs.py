"""The packs of a plan → plain values: those of the first steps, and the extremes of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.records import LengthTable, PackPlan

PACKS = 10_000
"""Packs in the page."""
ENDS = 50
"""Of each thing that packs are sorted by, how many from both ends of the whole plan are among them."""
DOCUMENTS = 60_000
"""Documents that the page names, those of the extreme packs first."""

Plain = dict[str, Any]


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
    """The packs whose documents are named, as long as there is room for them."""
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
