"""How good a plan is, in the plan's own words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.plan.costs import pack_sums, sample_costs
from lading.records import LengthTable, PackPlan


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
    """Σ over steps of the slowest rank's cost, over Σ of the mean: 1 is perfect."""
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
    costs = pack_sums(sample_costs(table), plan.members, plan.starts)
    return PlanStats(
        samples=len(table),
        packed=len(plan.members),
        packs=len(plan),
        pack_size=plan.pack_size,
        tokens=tokens,
        label_tokens=int(table.label_tokens[plan.members].sum()),
        fill=tokens / (len(plan) * plan.pack_size) if len(plan) else 0.0,
        lower_bound=lower_bound(table.tokens[plan.members].astype(np.int64), plan.pack_size),
        world_size=plan.world_size,
        steps=len(plan.order),
        repeated=plan.repeated,
        straggler=straggler_factor(costs[plan.order]),
        truncated=len(table.truncated),
        tokens_cut=sum(entry.tokens - entry.kept for entry in table.truncated),
        dropped=len(table.dropped) + len(plan.too_long),
        dropped_by_reason=reasons,
    )


def lower_bound(lengths: NDArray[np.int64], capacity: int) -> int:
    """Packs that any packing needs: by volume, and because two samples over half a pack never share one.

    >>> lower_bound(np.array([6, 6, 6, 1]), 10)
    3
    """
    by_volume = -(-int(lengths.sum()) // capacity)
    return max(by_volume, int(np.count_nonzero(2 * lengths > capacity)))


def straggler_factor(costs: NDArray[np.float64]) -> float:
    """[steps, ranks] costs → how much longer the run takes than with perfect balance.

    >>> straggler_factor(np.array([[1.0, 1.0], [1.0, 3.0]]))
    1.3333333333333333
    """
    mean = float(costs.mean(axis=1).sum()) if costs.size else 0.0
    return float(costs.max(axis=1).sum()) / mean if mean else 1.0
