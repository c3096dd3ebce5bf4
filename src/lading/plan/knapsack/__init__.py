"""Which samples share a pack. Each algorithm is one file; a name chooses.

>>> import numpy as np
>>> bins = ALGORITHMS["best_fit"](np.array([6, 5, 4, 3, 2]), 10)
>>> sorted(sorted(bins.members[a:b].tolist()) for a, b in zip(bins.starts, bins.starts[1:]))
[[0, 2], [1, 3, 4]]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.best_fit import best_fit
from lading.plan.knapsack.bins import Bins
from lading.plan.knapsack.exact_fill import exact_fill
from lading.plan.knapsack.first_fit import first_fit
from lading.plan.knapsack.in_order import in_order
from lading.plan.knapsack.tight_fit import tight_fit

Algorithm = Callable[[NDArray[np.int64], int], Bins]

ALGORITHMS: dict[str, Algorithm] = {
    "tight_fit": tight_fit,
    "best_fit": best_fit,
    "exact_fill": exact_fill,
    "first_fit": first_fit,
    "in_order": in_order,
}
"""(lengths, capacity) → bins. No length may exceed the capacity."""

__all__ = ["ALGORITHMS", "Algorithm", "Bins"]
