"""Which samples share a pack. Each algorithm is one file; a name chooses.

>>> import numpy as np
>>> bins = ALGORITHMS["best_fit"](np.array([6, 5, 4, 3, 2]), 10, np.zeros(5))
>>> sorted(sorted(bins.members[a:b].tolist()) for a, b in zip(bins.starts, bins.starts[1:]))
[[0, 2], [1, 3, 4]]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.balanced import balanced
from lading.plan.knapsack.best_fit import best_fit, tight_fit, worst_fit
from lading.plan.knapsack.bins import Bins, in_order, lower_bound
from lading.plan.knapsack.exact_fill import exact_fill
from lading.plan.knapsack.first_fit import first_fit

Algorithm = Callable[[NDArray[np.int64], int, NDArray[np.float64]], Bins]


def _by_length(pack: Callable[[NDArray[np.int64], int], Bins]) -> Algorithm:
    """An algorithm that looks at lengths alone."""
    return lambda lengths, capacity, vision: pack(lengths, capacity)


ALGORITHMS: dict[str, Algorithm] = {
    "balanced": balanced,
    "tight_fit": _by_length(tight_fit),
    "best_fit": _by_length(best_fit),
    "exact_fill": _by_length(exact_fill),
    "first_fit": _by_length(first_fit),
    "worst_fit": _by_length(worst_fit),
    "in_order": _by_length(in_order),
}
"""(lengths, capacity, vision) → bins. No length may exceed the capacity; vision is what each item costs there."""

__all__ = ["ALGORITHMS", "Algorithm", "Bins", "lower_bound"]
