"""How many tiles a picture is cut into, in integers alone. That they equal what processors make is a property test."""

from __future__ import annotations

import math
from collections.abc import Sequence


def panned_crops(height: int, width: int, *, least: int, most: int, ratio: float) -> int:
    """Crops along a long picture, each at least `least` pixels wide and at most `most` of them (the Gemma 3 kind).

    >>> panned_crops(300, 900, least=256, most=4, ratio=1.2), panned_crops(300, 310, least=256, most=4, ratio=1.2)
    (3, 0)
    """
    long, short = max(height, width), min(height, width)
    if long / short < ratio:
        return 0
    crops = min(most, max(2, min(long // least, math.floor(long / short + 0.5))))
    return crops if min(math.ceil(long / crops), short) >= least else 0


def best_resolution(height: int, width: int, choices: Sequence[Sequence[int]]) -> tuple[int, int]:
    """The choice that keeps most of a picture's pixels, and of those the one that wastes least (the LLaVA-NeXT kind).

    >>> best_resolution(300, 900, [(384, 384), (384, 768), (768, 384)])
    (384, 768)
    """

    def merits(choice: Sequence[int]) -> tuple[int, int]:
        scale = min(choice[1] / width, choice[0] / height)
        kept = min(int(width * scale) * int(height * scale), width * height)
        return kept, kept - choice[0] * choice[1]

    found = max(choices, key=merits)
    return found[0], found[1]


def crop_grid(height: int, width: int, *, side: int, most: int) -> tuple[int, int]:
    """Rows and columns of square crops that a picture is fitted into (the Phi-4 kind).

    >>> crop_grid(500, 900, side=448, most=36), crop_grid(9000, 900, side=448, most=8)
    ((2, 3), (8, 1))
    """
    rows, columns = math.ceil(height / side), math.ceil(width / side)
    if rows * columns <= most:
        return rows, columns
    # By their number, as a processor tries them: of two grids of one shape the larger wins, for a large picture.
    grids = [(high, wide) for high in range(1, most + 1) for wide in range(1, most // high + 1)]
    best, distance = (1, 1), math.inf
    for high, wide in sorted(grids, key=lambda grid: grid[0] * grid[1]):
        found = abs(width / height - wide / high)
        if found < distance or (found == distance and height * width > 0.5 * side**2 * high * wide):
            best, distance = (high, wide), found
    return best


def seen_in_crops(height: int, width: int, grid: tuple[int, int], *, side: int, patch: int) -> tuple[int, int]:
    """Rows and columns of every other patch that show the picture, and not what fills its crops up (the Phi-4 kind).

    >>> seen_in_crops(300, 448, (1, 1), side=448, patch=14)
    (11, 16)
    """
    high, wide = grid[0] * side, grid[1] * side
    if wide / width < high / height:
        fitted = int(height * (wide / width)), wide
    else:
        fitted = high, int(width * (high / height))
    if min(fitted) < 10:
        raise ValueError(f"the aspect ratio is very extreme {fitted[::-1]}")
    each = side // patch
    return tuple(  # type: ignore[return-value]  # two of them
        sum(1 for place in range(crops * each - (crops * side - length) // patch) if place % each % 2 == 0)
        for crops, length in zip(grid, fitted, strict=True)
    )
