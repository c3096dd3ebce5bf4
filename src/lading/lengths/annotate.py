"""A row with its counts written into it, in the columns that `estimate` reads. Their sum is exact.

_text_tokens     tokens that belong to no medium, the chat template's own among them
_media_tokens    tokens of all media
mm_inputs_meta   {"images_meta": [[height, width], …], "videos_meta": [[frames, height, width, fps, duration], …]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lading.records import ImageSize, Length, Size, VideoSize


def annotated(row: Mapping[str, Any], length: Length, sizes: Sequence[Size]) -> dict[str, Any]:
    """The row with what it costs; `sizes` are those of its media, in reading order.

    >>> length = Length(tokens=20, label_tokens=4, visual_tokens=6, images=1)
    >>> annotated({"id": 7}, length, [ImageSize(height=56, width=84)])
    {'id': 7, '_text_tokens': 14, '_media_tokens': 6,
     'mm_inputs_meta': {'images_meta': [[56, 84]], 'videos_meta': []}}
    """
    media = length.visual_tokens + length.audio_tokens
    return {
        **row,
        "_text_tokens": length.tokens - media,
        "_media_tokens": media,
        "mm_inputs_meta": {
            "images_meta": [[size.height, size.width] for size in sizes if isinstance(size, ImageSize)],
            "videos_meta": [_clip(size) for size in sizes if isinstance(size, VideoSize)],
        },
    }


def _clip(size: VideoSize) -> list[float]:
    return [size.frames, size.height, size.width, size.fps, size.frames / size.fps if size.fps else 0.0]
