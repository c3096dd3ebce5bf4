"""Each rank's share of a corpus: of every data set, after its ratio, every `world_size`-th sample.

No sample is cut off to make the shares equal: of each data set they differ by at most one, and rank 0 never has the
fewest. Ranks stay in step by taking as many steps as the largest share needs, which every rank can work out for itself
(`largest_share`), without asking the others; a rank that runs out begins its own share again.

    sample   0 1 2 | 3 4 5 6        two data sets, ends (3, 7), two ranks
    rank 0   0   2 | 3   5
    rank 1     1   |   4   6
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from lading.errors import ConfigError
from lading.sources.corpus import choose


def share(ends: Sequence[int], rank: int, world_size: int) -> NDArray[np.int64]:
    """The sample numbers of one rank; `ends` are one past the last sample of each data set (`Corpus.ends`).

    >>> share((3, 7), rank=0, world_size=2).tolist(), share((3, 7), rank=1, world_size=2).tolist()
    ([0, 2, 3, 5], [1, 4, 6])
    """
    if world_size < 1 or not 0 <= rank < world_size:
        raise ConfigError(
            found=f"rank {rank} of {world_size}",
            wanted="a world size of 1 or more, and a rank below it",
            consequence="samples would be lost or repeated; nothing was read",
            where="shard",
        )
    blocks = [np.arange(start + rank, stop, world_size, dtype=np.int64) for start, stop in pairwise((0, *ends))]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


def largest_share(ends: Sequence[int], world_size: int) -> int:
    """How many samples the largest share has: what every rank takes its steps by.

    >>> largest_share((3, 7), world_size=2)
    4
    """
    return len(share(ends, 0, world_size))


def rows_of_rank(rows: int, ratio: float, rank: int, world_size: int) -> NDArray[np.int64]:
    """The row numbers of one file that a rank reads: the ratio first, then every `world_size`-th of what it chose.

    >>> rows_of_rank(3, 2.0, rank=1, world_size=2).tolist()
    [1, 0, 2]
    """
    if not ratio >= 0:
        raise ConfigError(found=f"sample_ratio {ratio}", wanted="0 or more", where="shard")
    chosen = choose(rows, ratio)
    mine = share((rows if chosen is None else len(chosen),), rank, world_size)
    return mine if chosen is None else chosen[mine]
