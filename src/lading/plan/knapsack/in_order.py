"""Take the samples as they come and open a new pack when the next one does not fit: the baseline to beat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import Bins


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
