"""Lengths → which samples share a pack, and which rank gets it when. Integers only: no data, no torch.

make            the plan of an epoch, from lengths
knapsack/       which samples share a pack; algorithms chosen by name
order           packs → (step, rank), alike in cost within a step; ways chosen by name
costs           what a pack costs in language, attention and vision, and how evenly ranks are loaded
carry_on        what is left of an epoch, for another number of ranks
assign_workers  which worker makes which batch
stats           how good a plan is
fingerprint     what tells plans apart
file            a plan on disk
"""

from lading.plan.make import make_plan
from lading.plan.stats import PlanStats, plan_stats

__all__ = ["PlanStats", "make_plan", "plan_stats"]
