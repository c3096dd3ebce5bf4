"""What clips take up, and which of their frames are used."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lading.errors import Reason, SkipSample
from lading.media.geometry.pictures import smart_resize, smart_resize_clip
from lading.records import Footprint, Size, VideoSize


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
    def read(cls, processor: Any, *, fps: float, pixels: Mapping[str, int] | None = None) -> ClipGrid:
        """Take the numbers from a processor; `fps` is used where it sets neither `fps` nor `num_frames`.

        `pixels` takes the place of the video processor's own bounds, for a processor that overrules them.
        """
        numbers = processor.video_processor
        bounds = numbers.size if pixels is None else pixels
        factor = numbers.patch_size * numbers.merge_size
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            temporal=numbers.temporal_patch_size,
            min_pixels=bounds["shortest_edge"],
            max_pixels=bounds["longest_edge"],
            min_frames=numbers.min_frames,
            max_frames=numbers.max_frames,
            fps=numbers.fps or fps,
            count=numbers.num_frames,
            # Both names are younger than the oldest transformers we run with.
            total_pixels=int(numbers.max_video_tokens * factor**2 * 0.9)
            if getattr(numbers, "cap_pixels_per_frame", False)
            else None,
        )

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What clips of these sizes take up, and which of their frames are used."""
        return [self._footprint(size) for size in sizes]

    def _footprint(self, size: Size) -> Footprint:
        assert isinstance(size, VideoSize)
        frames, most = self._frames(size), self.max_pixels
        if self.total_pixels is not None:
            share = min(most, self.total_pixels * self.temporal // len(frames))
            most = max(share, int(self.min_pixels * 1.05))
        height, width = smart_resize(
            size.height,
            size.width,
            factor=self.patch * self.merge,
            min_pixels=self.min_pixels,
            max_pixels=most,
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
        refuse_still_clips(size)
        if self.count is not None:
            return spread_frames(size, min(round(self.count / self.temporal) * self.temporal, size.frames))
        return sample_frames(
            size, fps=self.fps, multiple=self.temporal, min_frames=self.min_frames, max_frames=self.max_frames
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class StampedClipGrid:
    """Clips whose frames stand apart, each pair behind a timestamp, and share the pixel bounds (the Qwen3-VL kind)."""

    patch: int
    merge: int
    temporal: int
    min_pixels: int
    max_pixels: int
    min_frames: int
    max_frames: int
    fps: float
    count: int | None
    frame_tokens: int | None
    """Where set, a frame has at most this many tokens (`cap_pixels_per_frame`)."""
    stamp: str
    """The text of one pair of frames, with `{seconds}` in it and its pads written once."""

    @classmethod
    def read(cls, processor: Any, *, stamp: str) -> StampedClipGrid:
        """Take the numbers from a processor whose video processor is the Qwen3-VL kind."""
        numbers = processor.video_processor
        return cls(
            patch=numbers.patch_size,
            merge=numbers.merge_size,
            temporal=numbers.temporal_patch_size,
            min_pixels=numbers.size["shortest_edge"],
            max_pixels=numbers.size["longest_edge"],
            min_frames=numbers.min_frames,
            max_frames=numbers.max_frames,
            fps=numbers.fps,
            count=numbers.num_frames,
            # The name is younger than the oldest transformers we run with.
            frame_tokens=numbers.max_video_tokens if getattr(numbers, "cap_pixels_per_frame", False) else None,
            stamp=stamp,
        )

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What clips of these sizes take up, and which of their frames are used."""
        return [self._footprint(size) for size in sizes]

    def _footprint(self, size: Size) -> Footprint:
        assert isinstance(size, VideoSize)
        frames, most = self._frames(size), self.max_pixels
        if self.frame_tokens is not None:
            share = min(self.frame_tokens * (self.patch * self.merge) ** 2, most // len(frames))
            most = max(share, int(self.min_pixels * 1.05)) * len(frames)
        height, width = smart_resize_clip(
            len(frames),
            size.height,
            size.width,
            temporal_factor=self.temporal,
            factor=self.patch * self.merge,
            min_pixels=self.min_pixels,
            max_pixels=most,
        )
        grid = (math.ceil(len(frames) / self.temporal), height // self.patch, width // self.patch)
        tokens = grid[1] * grid[2] // self.merge**2
        return Footprint(
            kind="video",
            runs=(tokens,) * grid[0],
            rows=math.prod(grid),
            grid=grid,
            text="".join(self.stamp.format(seconds=seconds) for seconds in self._seconds(frames, size.fps)),
            frames=frames,
        )

    def _frames(self, size: VideoSize) -> tuple[int, ...]:
        refuse_still_clips(size)
        wanted = self.count
        if wanted is None:
            asked = int(size.frames / size.fps * self.fps)
            wanted = min(max(asked, self.min_frames), self.max_frames, size.frames)
        places = np.linspace(0, size.frames - 1, wanted).round().astype(np.int64)
        return tuple(places.tolist())

    def _seconds(self, frames: tuple[int, ...], fps: float) -> list[float]:
        """The middle of each pair of frames; an odd last frame stands twice."""
        padded = [*frames, *[frames[-1]] * (-len(frames) % self.temporal)]
        times = [frame / fps for frame in padded]
        return [(times[first] + times[first + self.temporal - 1]) / 2 for first in range(0, len(times), self.temporal)]


def refuse_still_clips(size: VideoSize) -> None:
    """A clip without frames or without a clock cannot be sampled."""
    if size.frames < 1 or size.fps <= 0:
        raise SkipSample(
            Reason.CORRUPT_MEDIA, found=f"{size.frames} frames at {size.fps} a second", wanted="a clip that plays"
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
    places = (np.arange(math.ceil(size.frames / step)) * step).astype(np.float32).astype(np.int64)
    # Its length is rounded too, and may be one more than asked for: a frame that the clip does not have.
    return tuple(places[places < size.frames].tolist())
