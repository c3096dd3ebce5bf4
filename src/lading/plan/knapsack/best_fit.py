"""Best fit, longest first: each item goes where it leaves the least room.

Items of one length are interchangeable, and so are bins with the same room left. So whole groups move at once, and the
work grows with the number of distinct lengths, not with the number of items.

Traced on six numbers, capacity 10, lengths 7 6 4 3 3 2:

    room  bins                          length 7: none fits → a new bin, room 3
      3   {7}                           length 6: none fits → a new bin, room 4
      4   {6}        3  {7}             length 4: room 4 fits exactly
      0   {6 4}      3  {7}             length 3 (two): room 3 takes one, the other opens a bin, room 7
      0   {6 4} {7 3}      7  {3}       length 2: room 7 → 5
      0   {6 4} {7 3}      5  {3 2}
"""

from __future__ import annotations

import bisect
from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import Bins
from lading.plan.sorting import stable_order


class _Rooms:
    """Bins by the room left in them, as ranges of bin numbers; rooms in use are kept sorted."""

    def __init__(self) -> None:
        self.ranges: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
        self.used: list[int] = []

    def add(self, room: int, first: int, count: int) -> None:
        if room not in self.ranges:
            bisect.insort(self.used, room)
        self.ranges[room].append((first, count))

    def tightest(self, length: int) -> int | None:
        """The smallest room that takes `length`."""
        at = bisect.bisect_left(self.used, length)
        return self.used[at] if at < len(self.used) else None

    def take(self, room: int, most: int) -> tuple[int, int]:
        """Up to `most` bins of that room, as (first, count)."""
        first, count = self.ranges[room].pop()
        if count > most:
            self.ranges[room].append((first + most, count - most))
            count = most
        if not self.ranges[room]:
            del self.ranges[room]
            self.used.pop(bisect.bisect_left(self.used, room))
        return first, count


class _Filling:
    """The state of one run: rooms, and placements as (first item, first bin, bins, items a bin)."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.rooms = _Rooms()
        self.bins = 0
        self.placed: list[tuple[int, int, int, int]] = []

    def put(self, length: int, first_item: int, items: int) -> None:
        """Place `items` items of one length, numbered from `first_item` in sorted order."""
        while items:
            room = self.rooms.tightest(length)
            if room is None:
                self._open(-(-items // (self.capacity // length)))
                room = self.capacity
            first_item, items = self._fill(room, length, first_item, items)

    def _open(self, count: int) -> None:
        self.rooms.add(self.capacity, self.bins, count)
        self.bins += count

    def _fill(self, room: int, length: int, first_item: int, items: int) -> tuple[int, int]:
        """Fill bins of one room. The tightest bin stays the tightest until it is full, so it takes all that fit."""
        each = min(room // length, items)
        bin_, count = self.rooms.take(room, items // each)
        self.placed.append((first_item, bin_, count, each))
        self.rooms.add(room - each * length, bin_, count)
        return first_item + count * each, items - count * each


def best_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack by best fit, longest first."""
    bin_of_item, bins = best_fit_into(np.zeros(0, np.int64), lengths, capacity)
    return Bins.from_assignment(bin_of_item, bins)


def best_fit_into(rooms: NDArray[np.int64], lengths: NDArray[np.int64], capacity: int) -> tuple[NDArray[np.int64], int]:
    """The bin of every item, and how many bins there are then: those with these rooms, and new ones behind them.

    >>> best_fit_into(np.array([3, 5]), np.array([4, 3, 6]), 10)
    (array([2, 0, 2]), 3)
    """
    if not len(lengths):
        return np.zeros(0, np.int64), len(rooms)
    filling = _Filling(capacity)
    by_room = stable_order(rooms)
    filling.bins = len(rooms)
    if len(rooms):
        for room, first, count in zip(*_runs(rooms[by_room]), strict=True):
            filling.rooms.add(room, first, count)
    by_length = stable_order(capacity - lengths)
    for length, first_item, count in zip(*_runs(lengths[by_length]), strict=True):
        filling.put(length, first_item, count)
    # Bins that were there are numbered by their room while filling; here they get their own numbers back.
    numbers = np.concatenate([by_room, np.arange(len(rooms), filling.bins)])
    bin_of_item = np.empty(len(lengths), dtype=np.int64)
    bin_of_item[by_length] = numbers[_bins_of_items(filling.placed, len(lengths))]
    return bin_of_item, filling.bins


def _runs(values: NDArray[np.int64]) -> tuple[list[int], list[int], list[int]]:
    """Runs of equal values: value, first place, count."""
    borders = np.flatnonzero(np.diff(values)) + 1
    firsts = np.concatenate([[0], borders])
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
