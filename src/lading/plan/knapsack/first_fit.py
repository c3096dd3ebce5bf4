"""First fit, longest first: each item goes into the first bin that still takes it.

Items of one length would follow each other into the same bin until it is full, so all that fit there move at once; the
first bin with enough space is found in a tree of the largest spaces, not by walking along the bins.

Traced on six numbers, capacity 10, lengths 7 6 4 3 3 2:

    7 → {7}            6 → {7} {6}            4 → {7} {6 4}
    3 → {7 3} {6 4}    3 → {7 3} {6 4} {3}    2 → {7 3} {6 4} {3 2}
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import Bins, stable_order


class _Spaces:
    """Space left in each bin, under a tree whose every node holds the largest space below it."""

    def __init__(self, bins: int, capacity: int) -> None:
        self.leaves = 1 << max(0, bins - 1).bit_length()
        self.largest = [capacity] * (2 * self.leaves)

    def first(self, length: int) -> int:
        """The first bin that takes `length`."""
        node = 1
        while node < self.leaves:
            node *= 2
            if self.largest[node] < length:
                node += 1
        return node - self.leaves

    def space(self, bin_: int) -> int:
        return self.largest[self.leaves + bin_]

    def take(self, bin_: int, amount: int) -> None:
        node = self.leaves + bin_
        self.largest[node] -= amount
        while node > 1:
            node //= 2
            self.largest[node] = max(self.largest[2 * node], self.largest[2 * node + 1])


def first_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack by first fit, longest first.

    >>> bins = first_fit(np.array([7, 6, 4, 3, 3, 2]), 10)
    >>> [bins.members[start:stop].tolist() for start, stop in zip(bins.starts, bins.starts[1:])]
    [[0, 3], [1, 2], [4, 5]]
    """
    by_length = stable_order(capacity - lengths)
    sorted_lengths = lengths[by_length].tolist()
    # No item needs a bin of its own number or beyond: there are never more bins than items.
    spaces = _Spaces(len(sorted_lengths), capacity)
    bin_of_place = np.zeros(len(sorted_lengths), dtype=np.int64)
    place = bins = 0
    while place < len(sorted_lengths):
        length = sorted_lengths[place]
        bin_ = spaces.first(length)
        stop = place + _run(sorted_lengths, place, spaces.space(bin_) // length)
        bin_of_place[place:stop] = bin_
        spaces.take(bin_, length * (stop - place))
        bins, place = max(bins, bin_ + 1), stop
    bin_of_item = np.zeros(len(lengths), dtype=np.int64)
    bin_of_item[by_length] = bin_of_place
    return Bins.from_assignment(bin_of_item, bins)


def _run(values: list[int], start: int, most: int) -> int:
    """How many values equal to the first stand in a row, at most `most`."""
    stop = start + 1
    while stop < len(values) and stop - start < most and values[stop] == values[start]:
        stop += 1
    return stop - start
