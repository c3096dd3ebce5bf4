"""What every algorithm gives: items bin after bin, in two flat arrays. And the fewest bins that any can give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.plan.sorting import stable_order


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
