"""All resize arithmetic: how large a picture becomes, and how many patches and tokens that is.

Every function here works on integers alone. That the results equal what transformers' processors do with the pixels is
a property test, over every size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from lading.errors import Reason, SkipSample
from lading.records import Footprint, ImageSize, Size, VideoSize

MAX_ASPECT_RATIO = 200


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
            Reason.IMPOSSIBLE_SHAPE, found=f"a picture of {height}×{width}", wanted="at least one pixel each way"
        )
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise SkipSample(
            Reason.IMPOSSIBLE_SHAPE,
            found=f"a picture of {height}×{width}",
            wanted=f"a long side at most {MAX_ASPECT_RATIO} times the short one",
        )


def sample_frames(size: VideoSize, *, fps: float, multiple: int, min_frames: int, max_frames: int) -> tuple[int, ...]:
    """Which frames of a clip are used: `fps` a second, evenly spread, a whole number of temporal patches.

    >>> sample_frames(VideoSize(frames=60, height=8, width=8, fps=30.0), fps=2, multiple=2, min_frames=4, max_frames=8)
    (0, 15, 30, 45)
    """
    upper = math.floor(min(max_frames, size.frames) / multiple) * multiple
    wanted = min(max(size.frames / size.fps * fps, min_frames), upper, size.frames)
    return spread_frames(size, math.floor(wanted / multiple) * multiple)


def spread_frames(size: VideoSize, count: int) -> tuple[int, ...]:
    """`count` frames, evenly spread; all of them where the clip is shorter than one temporal patch."""
    if count < 1:
        return tuple(range(size.frames))
    step = size.frames / count
    # transformers spreads frames with a float32 `arange`; its rounding decides between neighbours, so ours must too.
    places = (np.arange(math.ceil(size.frames / step)) * step).astype(np.float32)
    return tuple(places.astype(np.int64).tolist())


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
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            min_pixels=numbers.size["shortest_edge"],
            max_pixels=numbers.size["longest_edge"],
        )

    def footprint(self, size: Size) -> Footprint:
        """What a picture of this size takes up.

        >>> grid = PatchGrid(patch=14, merge=2, min_pixels=3136, max_pixels=12845056)
        >>> grid.footprint(ImageSize(height=168, width=300)).runs
        (66,)
        """
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


@dataclass(frozen=True, kw_only=True, slots=True)
class ClipGrid:
    """Clips sampled in time, resized frame by frame, cut into a grid of temporal patches (the Qwen2-VL kind)."""

    patch: int
    merge: int
    temporal: int
    min_pixels: int
    max_pixels: int
    min_frames: int
    max_frames: int
    fps: float
    count: int | None
    """A fixed number of frames, where the processor asks for one; else `fps` a second."""
    total_pixels: int | None
    """Where set, all frames of a clip share this many pixels (`cap_pixels_per_frame`)."""

    @classmethod
    def read(cls, processor: Any, *, fps: float) -> ClipGrid:
        """Take the numbers from a processor; `fps` is used where it sets neither `fps` nor `num_frames`."""
        numbers = processor.video_processor
        factor = numbers.patch_size * numbers.merge_size
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            temporal=numbers.temporal_patch_size,
            min_pixels=numbers.size["shortest_edge"],
            max_pixels=numbers.size["longest_edge"],
            min_frames=numbers.min_frames,
            max_frames=numbers.max_frames,
            fps=numbers.fps or fps,
            count=numbers.num_frames,
            # Both names are younger than the oldest transformers we run with.
            total_pixels=int(numbers.max_video_tokens * factor**2 * 0.9)
            if getattr(numbers, "cap_pixels_per_frame", False)
            else None,
        )

    def footprint(self, size: Size) -> Footprint:
        """What a clip of this size takes up, and which of its frames are used."""
        assert isinstance(size, VideoSize)
        frames = self._frames(size)
        height, width = smart_resize(
            size.height,
            size.width,
            factor=self.patch * self.merge,
            min_pixels=self.min_pixels,
            max_pixels=self._pixels_a_frame(len(frames)),
        )
        grid = (math.ceil(len(frames) / self.temporal), height // self.patch, width // self.patch)
        rows = math.prod(grid)
        sampled_fps = len(frames) / size.frames * size.fps
        return Footprint(
            kind="video",
            runs=(rows // self.merge**2,),
            rows=rows,
            grid=grid,
            frames=frames,
            seconds=self.temporal / sampled_fps,
        )

    def _frames(self, size: VideoSize) -> tuple[int, ...]:
        if size.frames < 1 or size.fps <= 0:
            raise SkipSample(
                Reason.CORRUPT_MEDIA, found=f"{size.frames} frames at {size.fps} a second", wanted="a clip that plays"
            )
        if self.count is not None:
            return spread_frames(size, min(round(self.count / self.temporal) * self.temporal, size.frames))
        return sample_frames(
            size, fps=self.fps, multiple=self.temporal, min_frames=self.min_frames, max_frames=self.max_frames
        )

    def _pixels_a_frame(self, frames: int) -> int:
        if self.total_pixels is None:
            return self.max_pixels
        share = min(self.max_pixels, self.total_pixels * self.temporal // frames)
        return max(share, int(self.min_pixels * 1.05))
