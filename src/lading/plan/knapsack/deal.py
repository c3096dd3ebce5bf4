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

FEW = 0.02
"""With fewer bins than this share still open, a round moves too little to be worth its sort."""


class Dealing:
    """Bins as they fill: the room in each, and the bin of every item (-1: none yet)."""

    def __init__(self, lengths: NDArray[np.int64], *, bins: int, capacity: int) -> None:
        self.lengths = lengths
        self.room = np.full(bins, capacity, dtype=np.int64)
        self.bin_of_item = np.full(len(lengths), -1, dtype=np.int64)

    def deal(
        self, items: NDArray[np.int64], weights: NDArray[np.float64], load: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Deal items in the given order; each round goes to the bins with the least load. Gives back what is left.

        >>> dealing = Dealing(np.array([7, 6, 4, 3, 3, 2]), bins=3, capacity=10)
        >>> left = dealing.deal(np.arange(6), dealing.lengths.astype(float), np.zeros(3))
        >>> dealing.bin_of_item.tolist(), dealing.room.tolist(), left.tolist()
        ([0, 1, 2, 2, 1, 0], [1, 1, 3], [])
        """
        handed_back = []
        open_bins = np.arange(len(self.room))
        while len(items) and len(open_bins) > FEW * len(self.room):
            hand, items = items[: len(open_bins)], items[len(open_bins) :]
            least = open_bins[np.argsort(load[open_bins], kind="stable")][: len(hand)]
            fits = self.lengths[hand] <= self.room[least]
            taken, bins = hand[fits], least[fits]
            self.bin_of_item[taken] = bins
            self.room[bins] -= self.lengths[taken]
            load[bins] += weights[taken]
            handed_back.append(hand[~fits])
            if len(items):
                open_bins = open_bins[self.room[open_bins] >= self.lengths[items].min()]
        return np.concatenate([*handed_back, items])

    def sums(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What the items of each bin weigh by now."""
        placed = self.bin_of_item >= 0
        return np.bincount(self.bin_of_item[placed], weights[placed], len(self.room)).astype(np.float64)
