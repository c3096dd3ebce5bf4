"""Items dealt to a fixed number of bins like cards, a round at a time: the next items to the bins that have least.

Traced on three bins of capacity 10 and lengths 7 6 4 3 3 2, dealt by length:

    round 1   7 6 4   to bins with 0 0 0   →   7 6 4
    round 2   3 3 2   to 4 6 7, in that order  →   {4 3} {6 3} {7 2}

Unlike best fit, which puts the long with the long, this gives every bin a share of everything. Items that do not fit
where their turn falls are handed back.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import stable_order

FEW = 0.02
"""With fewer bins than this share still open, a round moves too little to be worth its sort."""


class Dealing:
    """Bins as they fill: the space in each, and the bin of every item (-1: none yet)."""

    def __init__(self, lengths: NDArray[np.int64], *, bins: int, capacity: int) -> None:
        self.lengths = lengths
        self.capacity = capacity
        self.space = np.full(bins, capacity, dtype=np.int64)
        self.bin_of_item = np.full(len(lengths), -1, dtype=np.int64)

    def deal(self, items: NDArray[np.int64], weights: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Deal items in the given order; each round goes to the bins with the least weight. Gives back what is left.

        What weighs is the items' length, unless something else is said for every item.

        >>> dealing = Dealing(np.array([7, 6, 4, 3, 3, 2]), bins=3, capacity=10)
        >>> left = dealing.deal(np.arange(6))
        >>> dealing.bin_of_item.tolist(), dealing.space.tolist(), left.tolist()
        ([0, 1, 2, 2, 1, 0], [1, 1, 3], [])
        """
        # Items lie anywhere in memory: they are looked up once, not in every round.
        lengths = self.lengths[items]
        heavy = lengths if weights is None else weights[items]
        load = self.capacity - self.space if weights is None else self._sums(weights)
        shortest_from = np.minimum.accumulate(lengths[::-1])[::-1]
        bin_of_place = np.full(len(items), -1, dtype=np.int64)
        open_bins = np.arange(len(self.space))
        place = 0
        while place < len(items) and len(open_bins) > FEW * len(self.space):
            hand = slice(place, place + len(open_bins))
            least = open_bins[stable_order(load[open_bins])][: len(items) - place]
            fits = lengths[hand] <= self.space[least]
            bins = least[fits]
            bin_of_place[hand][fits] = bins
            self.space[bins] -= lengths[hand][fits]
            load[bins] += heavy[hand][fits]
            place += len(least)
            if place < len(items):
                open_bins = open_bins[self.space[open_bins] >= shortest_from[place]]
        self.bin_of_item[items] = bin_of_place
        return items[bin_of_place < 0]

    def _sums(self, weights: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the items of each bin weigh by now."""
        placed = np.flatnonzero(self.bin_of_item >= 0)
        # Sums of whole numbers below 2⁵³ are exact in the floats that this counts with.
        return np.bincount(self.bin_of_item[placed], weights[placed], len(self.space)).astype(np.int64)
