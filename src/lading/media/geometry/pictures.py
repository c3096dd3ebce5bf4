"""How large a picture becomes, how many tiles it is cut into, and what it takes up, in integers alone.

That the sizes equal transformers' own is a property test, over every size, as is that tiles equal what processors make.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lading.errors import Reason, SkipSample
from lading.records import Footprint, ImageSize, Size

MAX_ASPECT_RATIO = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchGrid:
    """Pictures resized to a multiple of the merged patch, then cut into a grid (the Qwen-VL kind)."""

    patch: int
    merge: int
    min_pixels: int
    max_pixels: int

    @classmethod
    def read(cls, processor: Any) -> PatchGrid:
        """Take the numbers from a processor whose image processor is the Qwen2-VL kind."""
        numbers = processor.image_processor
        # Set on the object after it was made, as is the custom with Qwen, these go before `size`.
        own = {name: value for name, value in vars(numbers).items() if value is not None}
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            min_pixels=own.get("min_pixels", numbers.size["shortest_edge"]),
            max_pixels=own.get("max_pixels", numbers.size["longest_edge"]),
        )

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What pictures of these sizes take up.

        >>> grid = PatchGrid(patch=14, merge=2, min_pixels=3136, max_pixels=12845056)
        >>> [footprint.runs for footprint in grid.footprints([ImageSize(height=168, width=300)])]
        [(66,)]
        """
        found = []
        for size in sizes:
            assert isinstance(size, ImageSize)
            height, width = smart_resize(
                size.height,
                size.width,
                factor=self.patch * self.merge,
                min_pixels=self.min_pixels,
                max_pixels=self.max_pixels,
            )
            grid = (1, height // self.patch, width // self.patch)
            rows = math.prod(grid)
            found.append(Footprint(kind="image", runs=(rows // self.merge**2,), rows=rows, grid=grid))
        return found


def smart_resize(height: int, width: int, *, factor: int, min_pixels: int, max_pixels: int) -> tuple[int, int]:
    """The size a Qwen-VL processor gives a picture: multiples of `factor`, area within bounds, shape kept if possible.

    >>> smart_resize(168, 300, factor=28, min_pixels=3136, max_pixels=12845056)
    (168, 308)
    """
    _refuse_extreme_shapes(height, width)
    rounded = round(height / factor) * factor, round(width / factor) * factor
    if rounded[0] * rounded[1] > max_pixels:
        shrink = math.sqrt((height * width) / max_pixels)
        return _floored(height, width, shrink, factor)
    if rounded[0] * rounded[1] < min_pixels:
        grow = math.sqrt(min_pixels / (height * width))
        return math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    return rounded


def smart_resize_clip(
    frames: int, height: int, width: int, *, temporal_factor: int, factor: int, min_pixels: int, max_pixels: int
) -> tuple[int, int]:
    """The size a Qwen3-VL processor gives the frames of a clip: like `smart_resize`, but all frames share the bounds.

    >>> smart_resize_clip(8, 1080, 1920, temporal_factor=2, factor=32, min_pixels=4096, max_pixels=8 * 640 * 360)
    (352, 640)
    """
    if frames < temporal_factor:
        raise SkipSample(
            Reason.IMPOSSIBLE_SHAPE, found=f"a clip of {frames} frames", wanted=f"{temporal_factor} or more"
        )
    if height < factor or width < factor:
        scale = max(factor / max(height, 1), factor / max(width, 1))
        height, width = int(height * scale), int(width * scale)
    _refuse_extreme_shapes(height, width)
    rounded = round(height / factor) * factor, round(width / factor) * factor
    volume = round(frames / temporal_factor) * temporal_factor * rounded[0] * rounded[1]
    if volume > max_pixels:
        shrink = math.sqrt((frames * height * width) / max_pixels)
        return _floored(height, width, shrink, factor)
    if volume < min_pixels:
        grow = math.sqrt(min_pixels / (frames * height * width))
        return math.ceil(height * grow / factor) * factor, math.ceil(width * grow / factor) * factor
    return rounded


def _floored(height: int, width: int, shrink: float, factor: int) -> tuple[int, int]:
    """Shrunk, rounded down to the factor, but never to nothing."""
    return (
        max(factor, math.floor(height / shrink / factor) * factor),
        max(factor, math.floor(width / shrink / factor) * factor),
    )


def _refuse_extreme_shapes(height: int, width: int) -> None:
    if min(height, width) < 1:
        raise SkipSample(
            Reason.IMPOSSIBLE_SHAPE, found=f"a picture of {width}×{height} pixels", wanted="at least one pixel each way"
        )
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise SkipSample(
            Reason.IMPOSSIBLE_SHAPE,
            found=f"a picture of {width}×{height} pixels",
            wanted=f"a long side at most {MAX_ASPECT_RATIO} times the short one",
        )


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
