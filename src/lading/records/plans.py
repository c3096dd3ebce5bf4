"""Which samples share a pack, and when it is trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackPlan:
    """Which samples share a pack, and which rank gets it when. Law: every sample is in one pack or in `dropped`."""

    pack_size: int
    world_size: int
    seed: int
    epoch: int
    algorithm: str
    members: NDArray[np.int64]
    """Sample indices, pack after pack."""
    starts: NDArray[np.int64]
    """`members[starts[p]:starts[p + 1]]` are the samples of pack p."""
    tokens: NDArray[np.int64]
    """Tokens in each pack."""
    order: NDArray[np.int64]
    """[steps, world_size] pack numbers. In the last step a pack may stand again (see `repeated`)."""
    repeated: int
    """How many places of the last step hold a repeat."""
    too_long: NDArray[np.int64]
    """Samples longer than a pack."""
    uncounted: int
    """Samples that could not be counted; the length table names them."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def pack(self, number: int) -> NDArray[np.int64]:
        """The sample indices of one pack."""
        return self.members[self.starts[number] : self.starts[number + 1]]
