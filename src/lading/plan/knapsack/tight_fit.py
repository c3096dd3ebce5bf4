"""Best fit; for a small corpus that it leaves uneven, also an attempt to fill every bin exactly. Fewer bins win."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.best_fit import best_fit
from lading.plan.knapsack.bins import Bins, lower_bound
from lading.plan.knapsack.exact_fill import exact_fill

SMALL = 20_000_000
"""Items times capacity. In larger corpora best fit is within a few bins of the bound, those no longer count, and the
search would take seconds."""


def tight_fit(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack by best fit, or better.

    >>> lengths = np.array([6, 6, 5, 4, 3, 2, 2, 2])
    >>> len(best_fit(lengths, 10)), len(tight_fit(lengths, 10))
    (4, 3)
    """
    bins = best_fit(lengths, capacity)
    if len(bins) <= lower_bound(lengths, capacity) or len(lengths) * capacity > SMALL:
        return bins
    filled = exact_fill(lengths, capacity)
    return filled if len(filled) < len(bins) else bins
