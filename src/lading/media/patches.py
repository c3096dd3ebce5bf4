"""Frames → patches, in bytes from the decoder to the end.

A processor of the Qwen-VL kind makes floats of a picture and then puts those in order; here its bytes are, an eighth of
the memory for a still picture, whose one frame is not written down twice. The resized pixels are the processor's own,
bit by bit: the same kernel is asked, with the channels left where the decoder put them, which is faster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Grid = tuple[int, int, int]
"""(t, h, w) in patches."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutter:
    """Resizes frames to a grid, and cuts them into its patches."""

    patch: int
    merge: int
    """Patches are ordered in squares of this side, which the model makes one token of."""
    depth: int
    """Frames in a patch: 1 for a still picture, however often the model sees it."""
    interpolation: Any
    """torchvision's name for how pixels are found between pixels."""

    def cut(self, media: Sequence[NDArray[np.uint8]], grids: Sequence[Grid]) -> Tensor:
        """The patches [P, 3 * depth * patch²] of media [frames, height, width, 3 or 4], one after the other.

        A fourth channel is left out.

        >>> from torchvision.transforms import InterpolationMode
        >>> cutter = PatchCutter(patch=2, merge=1, depth=1, interpolation=InterpolationMode.BICUBIC)
        >>> frames = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(1, 4, 4, 3)
        >>> cutter.cut([frames], [(1, 2, 2)])[0].tolist()
        [0, 3, 12, 15, 1, 4, 13, 16, 2, 5, 14, 17]
        """
        import torch

        rows = [time * high * wide for time, high, wide in grids]
        patches = np.empty((sum(rows), 3 * self.depth * self.patch**2), dtype=np.uint8)
        start = 0
        for frames, grid, count in zip(media, grids, rows, strict=True):
            self._write(self._resized(frames, grid), grid, patches[start : start + count])
            start += count
        return torch.from_numpy(patches)

    def _write(self, frames: NDArray[np.uint8], grid: Grid, patches: NDArray[np.uint8]) -> None:
        if self.depth == 1 and frames.shape[-1] == 4:
            self._write_pixels(frames, grid, patches)
            return
        ordered = self._ordered(frames, grid)
        np.copyto(patches.reshape(ordered.shape), ordered)

    def _write_pixels(self, frames: NDArray[np.uint8], grid: Grid, patches: NDArray[np.uint8]) -> None:
        """The same for still pictures of four bytes a pixel, in half the time: in long steps instead of single bytes.

        First whole pixels are put in order, a line of a patch at a time. A channel is then the lowest byte of every
        number of four bytes, if one begins to read at that channel.
        """
        (time, high, wide), side, merge = grid, self.patch, self.merge
        line = np.dtype((np.void, side * 4))
        lines = frames.reshape(time, high // merge, merge, side, wide // merge, merge, side * 4).view(line)[..., 0]
        ordered = lines.transpose(0, 1, 4, 2, 5, 3)
        size = frames.size
        pixels = np.empty(size + 2, dtype=np.uint8)  # the last channel's last number begins late
        np.copyto(pixels[:size].view(line).reshape(ordered.shape), ordered)
        planes = patches.reshape(len(patches), 3, side * side)
        for channel in range(3):
            begun = np.ndarray((len(patches), side * side), dtype="<u4", buffer=pixels, offset=channel)
            np.copyto(planes[:, channel], begun, casting="unsafe")

    def _resized(self, frames: NDArray[np.uint8], grid: Grid) -> NDArray[np.uint8]:
        import torch
        from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]  # it has no types

        wanted = grid[0] * self.depth
        if wanted > len(frames):
            # The last patch of a clip may want more frames than there are: its last one stands again.
            frames = frames[np.minimum(np.arange(wanted), len(frames) - 1)]
        resized = functional.resize_image(
            torch.from_numpy(frames).permute(0, 3, 1, 2),
            [grid[1] * self.patch, grid[2] * self.patch],
            interpolation=self.interpolation,
            antialias=True,
        )
        found: NDArray[np.uint8] = resized.permute(0, 2, 3, 1).numpy()
        return found

    def _ordered(self, frames: NDArray[np.uint8], grid: Grid) -> NDArray[np.uint8]:
        """The frames seen as [t, h / merge, w / merge, merge, merge, channel, depth, patch, patch]; nothing moves."""
        time, high, wide = grid
        side, merge = self.patch, self.merge
        apart = frames.reshape(time, self.depth, high // merge, merge, side, wide // merge, merge, side, -1)
        return apart[..., :3].transpose(0, 2, 5, 3, 6, 8, 1, 4, 7)
