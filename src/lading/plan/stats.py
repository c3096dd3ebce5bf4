"""How good a plan is: how full its packs, how even its steps, and how much of chance it keeps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.plan.costs import straggler_factor, straggler_factors
from lading.plan.knapsack import lower_bound
from lading.records import LengthTable, PackPlan

__all__ = ["PlanStats", "lower_bound", "plan_stats", "straggler_factor"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanStats:
    """Law: `samples` = packed + dropped, and `dropped` is the sum of `dropped_by_reason`."""

    samples: int
    packed: int
    packs: int
    pack_size: int
    tokens: int
    label_tokens: int
    fill: float
    """Tokens over packs × pack size."""
    lower_bound: int
    """No packing of these lengths can need fewer packs."""
    world_size: int
    steps: int
    repeated: int
    straggler: float
    """Σ over steps of the slowest rank's work, over Σ of the mean: 1 is perfect."""
    straggler_attention: float
    """The same for the attention of the language model alone."""
    straggler_vision: float
    """The same for the vision tower alone."""
    order_correlation: float
    """Between the place of a step and its work: 0 is a random order."""
    vision_spread: float
    """How far steps differ in vision, as standard deviation over mean."""
    truncated: int
    """Packed samples that were too long and are trained on in part."""
    tokens_cut: int
    """What those lost."""
    dropped: int
    dropped_by_reason: dict[str, int]


def plan_stats(plan: PackPlan, table: LengthTable) -> PlanStats:
    """Measure a plan."""
    reasons: dict[str, int] = {}
    for dropped in table.dropped:
        reasons[dropped.reason.value] = reasons.get(dropped.reason.value, 0) + 1
    if len(plan.too_long):
        reasons["too_long"] = reasons.get("too_long", 0) + len(plan.too_long)
    tokens = int(plan.tokens.sum())
    stragglers = straggler_factors(plan.costs, plan.order)
    return PlanStats(
        samples=len(table),
        packed=len(plan.members),
        packs=len(plan),
        pack_size=plan.pack_size,
        tokens=tokens,
        label_tokens=int(table.label_tokens[plan.members].sum(dtype=np.int64)),
        fill=tokens / (len(plan) * plan.pack_size) if len(plan) else 0.0,
        lower_bound=lower_bound(table.tokens[plan.members], plan.pack_size),
        world_size=plan.world_size,
        steps=len(plan.order),
        repeated=plan.repeated,
        straggler=stragglers.work,
        straggler_attention=stragglers.attention,
        straggler_vision=stragglers.vision,
        order_correlation=order_correlation(plan),
        vision_spread=vision_spread(plan),
        truncated=len(table.truncated),
        tokens_cut=sum(entry.tokens - entry.kept for entry in table.truncated),
        dropped=len(table.dropped) + len(plan.too_long),
        dropped_by_reason=reasons,
    )


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
