"""`nemo_automodel.components.datasets.vlm.samplers`, under its names."""

from __future__ import annotations

from lading.media.geometry import smart_resize, smart_resize_clip

__all__ = ["_smart_resize_image", "_smart_resize_video"]


def _smart_resize_image(
    height: int,
    width: int,
    factor: int = 28,
    min_pixels: int = 56 * 56,
    max_pixels: int = 14 * 14 * 4 * 1280,
) -> tuple[int, int]:
    """The resized (height, width) of a picture.

    >>> _smart_resize_image(768, 1024)
    (756, 1036)
    """
    return smart_resize(height, width, factor=factor, min_pixels=min_pixels, max_pixels=max_pixels)


def _smart_resize_video(
    num_frames: int,
    height: int,
    width: int,
    temporal_factor: int = 2,
    factor: int = 32,
    min_pixels: int = 128 * 128,
    max_pixels: int = 16 * 16 * 2 * 2 * 2 * 6144,
) -> tuple[int, int]:
    """The resized (height, width) of a clip's frames, all frames together within the bounds.

    >>> _smart_resize_video(16, 480, 640)
    (480, 640)
    """
    return smart_resize_clip(
        num_frames,
        height,
        width,
        temporal_factor=temporal_factor,
        factor=factor,
        min_pixels=min_pixels,
        max_pixels=max_pixels,
    )
