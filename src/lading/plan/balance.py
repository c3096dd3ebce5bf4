"""How evenly the ranks of a step are loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Stragglers:
    """Σ over steps of the slowest rank's cost, over Σ of the mean. Law: 1 is perfect."""

    work: float
    """All operations together."""
    attention: float
    vision: float


def straggler_factors(costs: NDArray[np.float32], order: NDArray[np.int64]) -> Stragglers:
    """From the costs of packs [packs, 3] and their places [steps, ranks]."""
    return Stragglers(
        work=straggler_factor(costs.sum(axis=1, dtype=np.float64)[order]),
        attention=straggler_factor(costs[:, 1].astype(np.float64)[order]),
        vision=straggler_factor(costs[:, 2].astype(np.float64)[order]),
    )


def straggler_factor(costs: NDArray[np.float64]) -> float:
    """[steps, ranks] costs → how much longer the run takes than with perfect balance.

    >>> straggler_factor(np.array([[1.0, 1.0], [1.0, 3.0]]))
    1.3333333333333333
    """
    mean = float(costs.mean(axis=1).sum()) if costs.size else 0.0
    return float(costs.max(axis=1).sum()) / mean if mean else 1.0
