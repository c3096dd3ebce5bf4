"""Which frames of a clip are used."""

from __future__ import annotations

import math

import numpy as np

from lading.errors import Reason, SkipSample
from lading.records import VideoSize


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
