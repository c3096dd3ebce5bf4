"""Worst fit, longest first: as few bins as the volume allows, and each item where most space is, round by round."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.best_fit import best_fit_into
from lading.plan.knapsack.bins import Bins, lower_bound
from lading.plan.knapsack.deal import Dealing
from lading.plan.sorting import stable_order


def worst_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack by worst fit; what its turn leaves over goes in by best fit.

    >>> worst_fit(np.array([7, 6, 4, 3, 3, 2]), 10).starts.tolist()
    [0, 2, 4, 6]
    """
    dealing = Dealing(lengths, bins=lower_bound(lengths, capacity), capacity=capacity)
    left = dealing.deal(stable_order(capacity - lengths))
    dealing.bin_of_item[left], bins = best_fit_into(dealing.space, lengths[left], capacity)
    return Bins.from_assignment(dealing.bin_of_item, bins)
