"""What a pack costs, in comparable numbers."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lading.records import LengthTable

CROSSOVER = 8192
"""Document length at which attention costs as much as everything else a token goes through (hidden size 2–4 k)."""


Number = TypeVar("Number", np.int64, np.float64)


def pack_sums(values: NDArray[Number], members: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[Number]:
    """Sum a per-sample value over each pack.

    >>> pack_sums(np.array([1, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3])).tolist()
    [3, 3]
    """
    if len(starts) == 1:
        return values[:0]
    return np.add.reduceat(values[members], starts[:-1])


def sample_costs(table: LengthTable) -> NDArray[np.float64]:
    """The work of each sample in token equivalents: tokens, attention within the sample, and vision patches."""
    tokens = table.tokens.astype(np.float64)
    return tokens + tokens**2 / CROSSOVER + table.patches / 4.0
