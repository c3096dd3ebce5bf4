"""What a pack costs, in operations: language, attention, vision."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lading.records import TYPICAL_WORK, LengthTable, Work

Number = TypeVar("Number", np.int64, np.float64)


def pack_sums(values: NDArray[Number], members: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[Number]:
    """Sum a per-sample value over each pack.

    >>> pack_sums(np.array([1, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3])).tolist()
    [3, 3]
    """
    if len(starts) == 1:
        return values[:0]
    return np.add.reduceat(values[members], starts[:-1])


def sample_costs(table: LengthTable, samples: NDArray[np.int64], work: Work = TYPICAL_WORK) -> NDArray[np.float64]:
    """[samples, 3]: the operations of some samples in language, attention and vision.

    >>> table = LengthTable.of(tokens=np.array([10, 20]), patches=np.array([0, 4]), patch_pairs=np.array([0, 16]))
    >>> sample_costs(table, np.array([1]), Work(token=2, pair=1, patch=5, patch_pair=1)).tolist()
    [[40.0, 400.0, 36.0]]
    """
    tokens = table.tokens[samples].astype(np.float64)
    vision = work.patch * table.patches[samples] + work.patch_pair * table.patch_pairs[samples]
    return np.stack([work.token * tokens, work.pair * tokens**2, vision], axis=1)
