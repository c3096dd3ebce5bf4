"""Best fit, longest first: each item goes where it leaves the least space.

Items of one length are interchangeable, and so are bins with the same space left. So whole groups move at once, and the
work grows with the number of distinct lengths, not with the number of items.

Traced on six numbers, capacity 10, lengths 7 6 4 3 3 2:

    space bins                          length 7: none fits → a new bin, space 3
      3   {7}                           length 6: none fits → a new bin, space 4
      4   {6}        3  {7}             length 4: space 4 fits exactly
      0   {6 4}      3  {7}             length 3 (two): space 3 takes one, the other opens a bin, space 7
      0   {6 4} {7 3}      7  {3}       length 2: space 7 → 5
      0   {6 4} {7 3}      5  {3 2}
"""

from __future__ import annotations

import bisect
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import Bins, lower_bound, stable_order
from lading.plan.knapsack.deal import Dealing
from lading.plan.knapsack.exact_fill import exact_fill


class _Spaces:
    """Bins by the space left in them, as ranges of bin numbers; spaces in use are kept sorted."""

    def __init__(self) -> None:
        self.ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self.used: list[int] = []

    def add(self, space: int, first: int, count: int) -> None:
        if space not in self.ranges:
            bisect.insort(self.used, space)
        self.ranges[space].append((first, count))

    def tightest(self, length: int) -> int | None:
        """The smallest space that takes `length`."""
        at = bisect.bisect_left(self.used, length)
        return self.used[at] if at < len(self.used) else None

    def take(self, space: int, most: int) -> tuple[int, int]:
        """Up to `most` bins of that space, as (first, count)."""
        first, count = self.ranges[space].pop()
        if count > most:
            self.ranges[space].append((first + most, count - most))
            count = most
        if not self.ranges[space]:
            del self.ranges[space]
            self.used.pop(bisect.bisect_left(self.used, space))
        return first, count


class _Filling:
    """The state of one run: spaces, and placements as (first item, first bin, bins, items a bin)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.spaces = _Spaces()
        self.bins = 0
        self.placed: list[tuple[int, int, int, int]] = []

    def put(self, length: int, first_item: int, items: int) -> None:
        """Place `items` items of one length, numbered from `first_item` in sorted order."""
        while items:
            space = self.spaces.tightest(length)
            if space is None:
                self._open(-(-items // (self.capacity // length)))
                space = self.capacity
            first_item, items = self._fill(space, length, first_item, items)

    def _open(self, count: int) -> None:
        self.spaces.add(self.capacity, self.bins, count)
        self.bins += count

    def _fill(self, space: int, length: int, first_item: int, items: int) -> tuple[int, int]:
        """Fill bins of one space. The tightest bin stays the tightest until it is full, so it takes all that fit."""
        each = min(space // length, items)
        bin_, count = self.spaces.take(space, items // each)
        self.placed.append((first_item, bin_, count, each))
        self.spaces.add(space - each * length, bin_, count)
        return first_item + count * each, items - count * each


def best_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack by best fit, longest first."""
    bin_of_item, bins = best_fit_into(np.zeros(0, np.int64), lengths, capacity)
    return Bins.from_assignment(bin_of_item, bins)


def best_fit_into(
    spaces: NDArray[np.int64], lengths: NDArray[np.int64], capacity: int
) -> tuple[NDArray[np.int64], int]:
    """The bin of every item, and how many bins there are then: those with these spaces, and new ones behind them.

    >>> best_fit_into(np.array([3, 5]), np.array([4, 3, 6]), 10)
    (array([2, 0, 2]), 3)
    """
    if not len(lengths):
        return np.zeros(0, np.int64), len(spaces)
    filling = _Filling(capacity)
    by_space = stable_order(spaces)
    filling.bins = len(spaces)
    if len(spaces):
        for space, first, count in zip(*_runs(spaces[by_space]), strict=True):
            filling.spaces.add(space, first, count)
    by_length = stable_order(capacity - lengths)
    for length, first_item, count in zip(*_runs(lengths[by_length]), strict=True):
        filling.put(length, first_item, count)
    # Bins that were there are numbered by their space while filling; here they get their own numbers back.
    numbers = np.concatenate([by_space, np.arange(len(spaces), filling.bins)])
    bin_of_item = np.empty(len(lengths), dtype=np.int64)
    bin_of_item[by_length] = numbers[_bins_of_items(filling.placed, len(lengths))]
    return bin_of_item, filling.bins


def _runs(values: NDArray[np.int64]) -> tuple[list[int], list[int], list[int]]:
    """Runs of equal values: value, first place, count."""
    boundaries = np.flatnonzero(np.diff(values)) + 1
    firsts = np.concatenate([[0], boundaries])
    counts = np.diff(np.concatenate([firsts, [len(values)]]))
    return values[firsts].tolist(), firsts.tolist(), counts.tolist()


def _bins_of_items(placed: list[tuple[int, int, int, int]], items: int) -> NDArray[np.int64]:
    """The bin of every item in sorted order: a placement gives `each` items to each of `count` bins from `bin` on."""
    table = np.array(sorted(placed), dtype=np.int64)
    _, bins, counts, each = table.T
    sizes = counts * each
    which = np.repeat(np.arange(len(table)), sizes)
    within = np.arange(items) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    result: NDArray[np.int64] = bins[which] + within // each[which]
    return result


SMALL = 20_000_000
"""Items times capacity. In larger corpora best fit is within a few bins of the bound, those no longer count, and the
search would take seconds."""


def tight_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Best fit; for a small corpus that it leaves uneven, also an attempt to fill every bin exactly. Fewer bins win.

    >>> lengths = np.array([6, 6, 5, 4, 3, 2, 2, 2])
    >>> len(best_fit(lengths, 10)), len(tight_fit(lengths, 10))
    (4, 3)
    """
    bins = best_fit(lengths, capacity)
    if len(bins) <= lower_bound(lengths, capacity) or len(lengths) * capacity > SMALL:
        return bins
    filled = exact_fill(lengths, capacity)
    return filled if len(filled) < len(bins) else bins


def worst_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Worst fit, longest first: each item where most space is, as few bins as the volume allows; the rest by best fit.

    >>> worst_fit(np.array([7, 6, 4, 3, 3, 2]), 10).starts.tolist()
    [0, 2, 4, 6]
    """
    dealing = Dealing(lengths, bins=lower_bound(lengths, capacity), capacity=capacity)
    left = dealing.deal(stable_order(capacity - lengths))
    dealing.bin_of_item[left], bins = best_fit_into(dealing.space, lengths[left], capacity)
    return Bins.from_assignment(dealing.bin_of_item, bins)
