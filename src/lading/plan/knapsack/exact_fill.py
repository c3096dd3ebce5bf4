"""Fill bins to the brim: the longest item, and then whichever others come closest to filling the rest exactly.

Which sums the others can make is a set of numbers, kept as the bits of one integer: adding an item is a shift and an
or. Traced on capacity 10 and lengths 6 5 3 2 2 2:

    bin 1   takes 6, space 4     sums of 3 2 2 2 up to 4: 0 2 3 4     4 = 2 + 2
    bin 2   takes 5, space 5     sums of 3 2: 0 2 3 5                 5 = 3 + 2

Among ways to make a sum, long items are preferred: short ones are worth more later. The work grows with the square of
the corpus where best fit's does not, so this is for corpora too small for best fit to come out even.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lading.plan.knapsack.bins import Bins

CANDIDATES = 400
"""Items that are considered for one bin, spread over all lengths that are left."""


def exact_fill(lengths: NDArray[np.int64], capacity: int) -> Bins:
    """Pack bin by bin, each as full as can be.

    >>> exact_fill(np.array([6, 5, 3, 2, 2, 2]), 10).starts.tolist()
    [0, 3, 6]
    """
    left = np.argsort(-lengths, kind="stable").tolist()
    members: list[int] = []
    starts = [0]
    while left:
        first, *rest = left
        space = capacity - int(lengths[first])
        chosen = {first, *_closest(rest, lengths, space)}
        members += [item for item in left if item in chosen]
        starts.append(len(members))
        left = [item for item in rest if item not in chosen]
    return Bins(members=np.array(members, dtype=np.int64), starts=np.array(starts, dtype=np.int64))


def _closest(items: list[int], lengths: NDArray[np.int64], space: int) -> list[int]:
    """Some of the items, longest first, whose lengths come closest to `space`."""
    fitting = [item for item in items if lengths[item] <= space]
    spread = np.unique(np.linspace(0, len(fitting) - 1, min(CANDIDATES, len(fitting))).astype(int)) if fitting else ()
    candidates = [fitting[place] for place in spread]
    sums, within = [1], (1 << (space + 1)) - 1
    for item in candidates:
        sums.append(sums[-1] | (sums[-1] << int(lengths[item])) & within)
    target = sums[-1].bit_length() - 1
    chosen: list[int] = []
    for place in range(len(candidates), 0, -1):
        # An item is needed where the sum cannot be made without it and all that come after.
        if not (sums[place - 1] >> target) & 1:
            chosen.append(candidates[place - 1])
            target -= int(lengths[candidates[place - 1]])
    return chosen
