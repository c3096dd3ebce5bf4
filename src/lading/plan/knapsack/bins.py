"""What every algorithm gives: items bin after bin, in two flat arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Bins:
    """`members[starts[b]:starts[b + 1]]` are the items of bin b."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @classmethod
    def from_assignment(cls, bin_of_item: NDArray[np.int64], bins: int) -> Bins:
        """From the bin number of every item. Items keep their order within a bin.

        >>> Bins.from_assignment(np.array([1, 0, 1]), 2).members.tolist()
        [1, 0, 2]
        """
        counts = np.bincount(bin_of_item, minlength=bins)
        return cls(members=np.argsort(bin_of_item, kind="stable"), starts=np.concatenate([[0], np.cumsum(counts)]))
