"""Which samples share a pack, and when it is trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, slots=True)
class Work:
    """Floating-point operations of a model, forward, for one unit of each kind. Law: only their ratios matter."""

    token: float
    """A token in everything of the language model but attention."""
    pair: float
    """Attention of the language model for one squared token of a document."""
    patch: float
    """A row of the vision tower, in everything that grows with their number."""
    patch_pair: float = 0.0
    """Attention of the vision tower for one pair of patches in a picture."""


TYPICAL_WORK = Work(token=1.4e10, pair=2.1e5, patch=1.3e9, patch_pair=2.0e4)
"""A model of seven billion parameters with a vision tower of six hundred million, where no family says better."""

TooLong = Literal["drop", "truncate"]
TOO_LONG: tuple[TooLong, ...] = get_args(TooLong)
"""What becomes of a sample longer than a pack."""

COSTS = ("language", "attention", "vision")
"""What a pack costs, in the order of the columns of `PackPlan.costs`."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PackPlan:
    """Which samples share a pack, and which rank gets it when. Law: every sample is in one pack, or in `too_long` or
    `uncounted`.
    """

    pack_size: int
    world_size: int
    seed: int
    epoch: int
    algorithm: str
    """How samples were put into packs."""
    placing: str
    """How packs were put on (step, rank)."""
    lengths: str
    """Fingerprint of the lengths that the plan was made from."""
    samples: int
    """How many samples those are."""
    members: NDArray[np.int64]
    """Sample indices, pack after pack."""
    starts: NDArray[np.int64]
    """`members[starts[p]:starts[p + 1]]` are the samples of pack p."""
    tokens: NDArray[np.int64]
    """Tokens in each pack."""
    costs: NDArray[np.float32]
    """[packs, 3]: what each pack costs in language, attention and vision, in operations. Seven digits, in memory as on
    disk: places are chosen by them, and must be the same for whoever made the plan and whoever reads it."""
    order: NDArray[np.int64]
    """[steps, world_size] pack numbers. In the last step a pack may stand that stood before (see `repeated`)."""
    repeated: int
    """How many places of the last step hold a repeat: its last ones, after the packs that are left."""
    too_long: NDArray[np.int64]
    """Samples longer than a pack."""
    uncounted: int
    """Samples that could not be counted; the length table names them."""

    def __len__(self) -> int:
        return len(self.starts) - 1

    def pack(self, number: int) -> NDArray[np.int64]:
        """The sample indices of one pack."""
        return self.members[self.starts[number] : self.starts[number + 1]]
