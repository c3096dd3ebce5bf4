"""Lengths → which samples share a pack, and which rank gets it when. Integers only: no data, no torch.

knapsack/   which samples share a pack; one algorithm a file, chosen by name
order       packs → (step, rank), alike in cost within a step
costs       what a pack costs
stats       how good a plan is
file        a plan on disk
"""

from lading.plan.make import make_plan
from lading.plan.stats import PlanStats, plan_stats

__all__ = ["PlanStats", "make_plan", "plan_stats"]
