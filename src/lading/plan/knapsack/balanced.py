"""Packs that are alike: each with its share of pictures, of long documents and of short ones, and still full.

Best fit puts the long with the long: a pack of pictures beside a pack of text. Here, in four turns:

    1   long documents, one to a pack, by space: what a pack's attention costs is settled by them
    2   documents with pictures, most vision first, to the packs with least vision
    3   documents of text, longest first, to the packs with most space
    4   the shortest of all, held back until now, by best fit: they close the gaps

Vision and length are compared in coarse levels, so that within a level chance decides who meets whom, and other
neighbours meet in every epoch. Where this costs more packs than `WORTH`, more documents are held back; where that does
not help, the packs are those of `tight_fit`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.best_fit import best_fit_into, tight_fit
from lading.plan.knapsack.bins import Bins, lower_bound, stable_order
from lading.plan.knapsack.deal import Dealing

LONG = 0.15
"""A document is long from this share of a pack on."""
HELD_BACK = (0.1, 0.2, 0.4)
"""Shares of all tokens that are tried as what closes the gaps."""
WORTH = 0.003
"""Balance may cost this share of packs."""
LEVELS = 256
"""Levels of a pack's capacity, and of its vision, in which documents are compared."""
FINE = 16 * LEVELS
"""Units of a pack's vision, in which packs are compared."""


def balanced(lengths: NDArray[np.int64], capacity: int, vision: NDArray[np.float64]) -> Bins:
    """Pack so that packs are alike in vision and in length; `lengths` come in random order.

    >>> bins = balanced(np.array([4, 4, 4, 4, 2, 2, 2, 2]), 12, np.array([9.0, 9, 0, 0, 0, 0, 0, 0]))
    >>> [sorted(bins.members[a:b].tolist())[0] for a, b in zip(bins.starts, bins.starts[1:])]
    [0, 1]
    """
    most = lower_bound(lengths, capacity) * (1 + WORTH)
    for share in HELD_BACK:
        bins = _dealt(lengths, capacity, vision, share)
        if len(bins) <= most:
            return bins
    tight = tight_fit(lengths, capacity)
    return bins if len(bins) <= len(tight) * (1 + WORTH) else tight


def _dealt(lengths: NDArray[np.int64], capacity: int, vision: NDArray[np.float64], share: float) -> Bins:
    packs = lower_bound(lengths, capacity)
    dealing = Dealing(lengths, bins=packs, capacity=capacity)
    # What a pack has of vision on average is `FINE` units, so that loads are whole numbers.
    units = np.ceil(vision * (packs * FINE / max(vision.sum(), 1.0))).astype(np.int64)
    pictured = units > 0
    short = _shortest(lengths, pictured, capacity, share)
    long = (lengths > LONG * capacity) & ~short
    seen = pictured & ~long & ~short
    text = ~(long | seen | short)
    left = [
        dealing.deal(_descending(long, lengths, LEVELS / capacity)),
        dealing.deal(_descending(seen, units, LEVELS / FINE), units),
        dealing.deal(_descending(text, lengths, LEVELS / capacity)),
    ]
    rest = np.concatenate([*left, np.flatnonzero(short)])
    dealing.bin_of_item[rest], bins = best_fit_into(dealing.space, lengths[rest], capacity)
    return Bins.from_assignment(dealing.bin_of_item, bins)


def _descending(chosen: NDArray[np.bool_], values: NDArray[np.int64], levels: float) -> NDArray[np.int64]:
    """The chosen items, most first, by so many levels a unit of their values."""
    items = np.flatnonzero(chosen)
    level = (values[items] * levels).astype(np.int64)
    return items[stable_order(level.max(initial=0) - level)]


def _shortest(lengths: NDArray[np.int64], seen: NDArray[np.bool_], capacity: int, share: float) -> NDArray[np.bool_]:
    """The shortest documents, up to a share of all tokens; those of text before those with pictures.

    No sort is needed: documents of one length are counted, and the share ends among those of one length.
    """
    keys = lengths + (capacity + 1) * seen
    counts = np.bincount(keys)
    each = np.arange(len(counts)) % (capacity + 1)
    sums = np.cumsum(counts * each)
    most = share * int(lengths.sum())
    last = int(np.searchsorted(sums, most, side="right"))
    short = keys < last
    if last < len(counts):
        over = int(most - (sums[last] - counts[last] * each[last])) // int(each[last])
        short[np.flatnonzero(keys == last)[:over]] = True
    return short
