"""Lengths → which samples share a pack, and which rank gets it when. Integers only: no data, no torch.

knapsack/     which samples share a pack; one algorithm a file, chosen by name
order/        packs → (step, rank), alike in cost within a step; one way a file, chosen by name
costs         what a pack costs in language, attention and vision
capacity      how much of a pack samples may fill beside a placeholder
carry_on      what is left of an epoch, for another number of ranks
assign_workers  which worker makes which batch
balance, randomness, stats   how good a plan is
fingerprint   what tells plans apart
sorting       stable orders of whole numbers, fast
file          a plan on disk
"""

from lading.plan.make import make_plan
from lading.plan.stats import PlanStats, plan_stats

__all__ = ["PlanStats", "make_plan", "plan_stats"]
