"""What pictures take up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lading.media.geometry.resize import smart_resize
from lading.records import Footprint, ImageSize, Size


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
        said = {name: value for name, value in vars(numbers).items() if value is not None}
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            min_pixels=said.get("min_pixels", numbers.size["shortest_edge"]),
            max_pixels=said.get("max_pixels", numbers.size["longest_edge"]),
        )

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What pictures of these sizes take up.

        >>> grid = PatchGrid(patch=14, merge=2, min_pixels=3136, max_pixels=12845056)
        >>> [footprint.runs for footprint in grid.footprints([ImageSize(height=168, width=300)])]
        [(66,)]
        """
        return [self._footprint(size) for size in sizes]

    def _footprint(self, size: Size) -> Footprint:
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
        return Footprint(kind="image", runs=(rows // self.merge**2,), rows=rows, grid=grid)
