"""What every algorithm gives: items bin after bin, in two flat arrays; the fewest bins that any can give; sorting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins:
    """`members[starts[b]:starts[b + 1]]` are the items of bin b."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def from_assignment(cls, bin_of_item: NDArray[np.int64], bins: int) -> Bins:
        """From the bin number of every item. Items keep their order within a bin; bins without any are left out.

        >>> Bins.from_assignment(np.array([2, 0, 2]), 3)
        Bins(members=array([1, 0, 2]), starts=array([0, 1, 3]))
        """
        counts = np.bincount(bin_of_item, minlength=bins)
        starts = np.concatenate([[0], np.cumsum(counts[counts > 0])]).astype(np.int64)
        return cls(members=stable_order(bin_of_item), starts=starts)


SHARES = 16
"""Up to so many items to a bin are counted for the bound."""


def lower_bound(lengths: NDArray[np.signedinteger[Any]], capacity: int) -> int:
    """Bins that any packing needs: by volume, and because of items over a half of a bin only one goes into each, of
    those over a third only two, and so on.

    >>> lower_bound(np.array([6, 6, 6, 1]), 10), lower_bound(np.array([4, 4, 4, 4, 4]), 10)
    (3, 3)
    """
    by_volume = -(-int(lengths.sum(dtype=np.int64)) // capacity)
    over = [int(np.count_nonzero(lengths > capacity // (share + 1))) for share in range(1, SHARES)]
    return max(by_volume, *(-(-count // share) for share, count in enumerate(over, start=1)))


def in_order(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack neighbours.

    >>> in_order(np.array([6, 5, 4]), 10).starts.tolist()
    [0, 1, 3]
    """
    ends = np.cumsum(lengths)
    starts = [0]
    while starts[-1] < len(lengths):
        begun = ends[starts[-1] - 1] if starts[-1] else 0
        starts.append(int(np.searchsorted(ends, begun + capacity, side="right")))
    return Bins(members=np.arange(len(lengths), dtype=np.int64), starts=np.array(starts, dtype=np.int64))


DIGIT = 16
"""Bits that are sorted by at a time."""


def stable_order(keys: NDArray[np.signedinteger[Any]]) -> NDArray[np.int64]:
    """Places by rising key, none of which is negative; equal keys keep their order, so that all plan alike.

    Sorted 16 bits at a time: numpy sorts those by counting, many times faster than numbers of 64 bits.

    >>> stable_order(np.array([70_000, 3, 70_000, 1])).tolist()
    [3, 1, 0, 2]
    """
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    # The lowest digit first: a later one keeps the order of those before it.
    for shift in range(DIGIT, int(keys.max(initial=0)).bit_length(), DIGIT):
        order = order[np.argsort((keys[order] >> shift).astype(np.uint16), kind="stable")]
    return order
