"""Packs as they come: what a sampler does that knows nothing of work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def shuffled(costs: NDArray[np.float32], world_size: int) -> NDArray[np.int64]:
    """Pack numbers as they are; they come in random order.

    >>> shuffled(np.zeros((3, 3)), 1).tolist()
    [0, 1, 2]
    """
    return np.arange(len(costs))
