"""JPEGs straight from libjpeg-turbo, where its answer is surely Pillow's, to the bit.

Pillow asks the same library for one line after the other and puts each in its place. Asked for the whole picture, with
a fourth byte for each pixel, which torch's resize kernel wants anyway, it is done in three quarters of the time. What
is odd about a JPEG (other colours than usual, a turned picture, bytes that do not belong there) is left to Pillow.
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.records import ImageSize

HEAD = 1 << 16
"""Bytes in which the header of nearly every JPEG ends."""
MAGIC = b"\xff\xd8\xff"
_JFIF, _SCAN = 0xE0, 0xDA
_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
"""Markers of the frame of a baseline, an extended and a progressive JPEG."""
_TABLES = frozenset({0xC4, 0xDB, 0xDD, 0xFE})
"""Huffman and quantisation tables, restarts, comments: they say nothing about size, colours or orientation."""
_LIBRARY = 3
"""From this version of libjpeg-turbo on, progressive JPEGs whose last scans are missing are smoothed alike."""


def size(head: bytes) -> ImageSize | None:
    """The size that the beginning of a plain JPEG states; `None`: ask Pillow."""
    return _usual(head) if is_plain(head) else None


def pixels(data: bytes) -> NDArray[np.uint8] | None:
    """The pixels [height, width, 4] of a JPEG in the usual colours, as they are stored; `None`: ask Pillow."""
    if _usual(data) is None:
        return None
    try:
        found: NDArray[np.uint8] = _library().decode_jpeg(data, "RGBX")
    except ValueError:
        # Cut off, or with more in it than belongs there: Pillow forgives the second, and says which it is.
        return None
    return found


def is_plain(head: bytes) -> bool:
    r"""Whether a JPEG's header ends in these bytes, and has nothing in it that may turn the picture (EXIF, XMP) or that
    Pillow may refuse (profiles, twelve bits, notes of other programs).

    >>> jfif, scan = b"\xff\xe0\x00\x10JFIF\x00" + bytes(9), b"\xff\xda" + bytes(10)
    >>> is_plain(b"\xff\xd8" + jfif + scan)
    True
    >>> is_plain(b"\xff\xd8" + jfif + b"\xff\xe1\x00\x08Exif\x00\x00" + scan)
    False
    """
    place = len(MAGIC) - 1
    while place + 9 <= len(head) and head[place] == 0xFF:
        marker, length = head[place + 1], int.from_bytes(head[place + 2 : place + 4], "big")
        if marker == _SCAN:
            return True
        jfif = marker == _JFIF and head[place + 4 : place + 9] == b"JFIF\0" and length >= 16
        if not (jfif or marker in _TABLES or (marker in _FRAMES and head[place + 4] == 8)):
            return False
        place += 2 + length
    return False


def _usual(data: bytes) -> ImageSize | None:
    from PIL import Image

    if _library() is None or not data.startswith(MAGIC):
        return None
    try:
        height, width, colours, _ = _library().decode_jpeg_header(data)
    except (ValueError, KeyError):  # KeyError: its table of names lacks a way of leaving colours out
        return None
    largest = Image.MAX_IMAGE_PIXELS
    if colours != "YCbCr" or (largest is not None and height * width > largest):
        return None
    return ImageSize(height=height, width=width)


@cache
def _library() -> Any:
    """`simplejpeg`; `None` where it is not installed, or where Pillow is built with another library than it is."""
    try:
        import simplejpeg
    except ImportError:
        return None
    return simplejpeg if _agrees(simplejpeg) else None


def _agrees(library: Any) -> bool:
    """Whether both see the same in the same noise: decoders may differ by one in every other pixel."""
    from PIL import Image, features

    version = features.version_feature("libjpeg_turbo") if features.check_feature("libjpeg_turbo") else None
    if version is None or int(version.split(".")[0]) < _LIBRARY:
        return False
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (41, 67, 3), np.uint8))
    file = BytesIO()
    noise.save(file, "JPEG", quality=75)
    with Image.open(file, formats=("JPEG",)) as picture:
        theirs = np.asarray(picture)
    return np.array_equal(library.decode_jpeg(file.getvalue(), "RGB"), theirs)
