"""What a pack costs, in operations: language, attention, vision; and how evenly the ranks of a step are loaded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.records import TYPICAL_WORK, LengthTable, Work


def vision_costs(table: LengthTable, samples: NDArray[np.int64], work: Work = TYPICAL_WORK) -> NDArray[np.float64]:
    """The operations of some samples in the vision tower.

    >>> table = LengthTable.of(tokens=np.array([10, 20]), patches=np.array([0, 4]), patch_pairs=np.array([0, 16]))
    >>> vision_costs(table, np.array([1]), Work(token=2, pair=1, patch=5, patch_pair=1)).tolist()
    [36.0]
    """
    if not table.patches.any() and not table.patch_pairs.any():
        return np.zeros(len(samples))
    return work.patch * table.patches[samples].astype(np.float64) + work.patch_pair * table.patch_pairs[samples]


def pack_costs(
    tokens: NDArray[np.int64], vision: NDArray[np.float64], starts: NDArray[np.int64], work: Work = TYPICAL_WORK
) -> NDArray[np.float32]:
    """[packs, 3]: the operations of packs in language, attention and vision; samples are given pack after pack.

    >>> pack_costs(np.array([20, 10]), np.array([36.0, 0]), np.array([0, 2]), Work(token=2, pair=1, patch=5)).tolist()
    [[60.0, 500.0, 36.0]]
    """
    begins = starts[:-1]
    sums = [
        work.token * np.add.reduceat(tokens, begins),
        work.pair * np.add.reduceat(tokens * tokens, begins),
        np.add.reduceat(vision, begins),
    ]
    return np.stack(sums, axis=1).astype(np.float32)


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
