"""How good a plan is, in the plan's own words."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lading.plan.balance import straggler_factor, straggler_factors
from lading.plan.knapsack import lower_bound
from lading.plan.randomness import order_correlation, vision_spread
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
