"""Packs in order of their vision alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def by_vision(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers by what they cost the vision tower.

    >>> by_vision(np.array([[3.0, 0, 1], [1, 0, 2]]), 1).tolist()
    [1, 0]
    """
    return np.argsort(-costs[:, 2], kind="stable")
