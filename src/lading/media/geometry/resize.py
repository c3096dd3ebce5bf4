"""How large a picture becomes, in integers alone. That it equals transformers is a property test, over every size."""

from __future__ import annotations

import math

from lading.errors import Reason, SkipSample

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
            Reason.IMPOSSIBLE_SHAPE, found=f"a picture of {width}×{height} pixels", wanted="at least one pixel each way"
        )
    if max(height, width) / min(height, width) > MAX_ASPECT_RATIO:
        raise SkipSample(
            Reason.IMPOSSIBLE_SHAPE,
            found=f"a picture of {width}×{height} pixels",
            wanted=f"a long side at most {MAX_ASPECT_RATIO} times the short one",
        )
