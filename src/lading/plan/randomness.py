"""How much of chance a plan keeps: in the order of its steps, in what a step is mixed of, in who meets whom."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.records import PackPlan


def order_correlation(plan: PackPlan) -> float:
    """Between the place of a step in the epoch and its work: near 0 where steps come in random order."""
    work = plan.costs.sum(axis=1)[plan.order].mean(axis=1) if len(plan.order) else np.zeros(0)
    if len(work) < 3 or np.ptp(work) < 1e-9 * work.mean():
        return 0.0
    return float(np.corrcoef(_ranks(work), np.arange(len(work)))[0, 1])


def vision_spread(plan: PackPlan) -> float:
    """How far steps differ in vision: standard deviation over mean. Like packs in a step make steps unlike each other;
    this is what balance costs in mixture.
    """
    steps = plan.costs[:, 2][plan.order].mean(axis=1) if len(plan.order) else np.zeros(0)
    return float(steps.std() / steps.mean()) if len(steps) and steps.mean() else 0.0


def neighbours_met_again(plan: PackPlan, other: PackPlan) -> float:
    """The share of pairs of neighbours in a pack who share a pack in another plan (the next epoch's), too.

    >>> from lading.plan import make_plan
    >>> from lading.records import LengthTable
    >>> table = LengthTable.of(tokens=np.full(4000, 10))
    >>> neighbours_met_again(*(make_plan(table, pack_size=40, epoch=epoch) for epoch in (0, 1))) < 0.01
    True
    """
    first, second = _neighbours(plan), _pack_of_sample(other)
    if not len(first):
        return 0.0
    return float((second[first[:, 0]] == second[first[:, 1]]).mean())


def _neighbours(plan: PackPlan) -> NDArray[np.int64]:
    """Pairs of samples that stand beside each other in a pack."""
    inside = np.ones(max(0, len(plan.members) - 1), dtype=np.bool_)
    inside[plan.starts[1:-1] - 1] = False
    return np.stack([plan.members[:-1][inside], plan.members[1:][inside]], axis=1)


def _pack_of_sample(plan: PackPlan) -> NDArray[np.int64]:
    packs = np.full(plan.samples, -1, dtype=np.int64)
    packs[plan.members] = np.repeat(np.arange(len(plan)), np.diff(plan.starts))
    return packs


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[np.argsort(values, kind="stable")] = np.arange(len(values))
    return ranks
