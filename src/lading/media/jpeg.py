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
_APP1, _SCAN = 0xE1, 0xDA
_BARE = frozenset({0x01, *range(0xD0, 0xDA)})
"""Markers without a length; none of them belongs into a header."""


def size(head: bytes) -> ImageSize | None:
    """The size that the beginning of an ordinary JPEG states; `None`: ask Pillow."""
    return None if may_be_turned(head) else _usual(head)


def pixels(data: bytes) -> NDArray[np.uint8] | None:
    """An ordinary JPEG's pixels [height, width, 4], as they are stored; `None`: ask Pillow."""
    if _usual(data) is None:
        return None
    try:
        found: NDArray[np.uint8] = _library().decode_jpeg(data, "RGBX")
    except ValueError:
        # Cut off, or with more in it than belongs there: Pillow forgives the second, and says which it is.
        return None
    return found


def may_be_turned(head: bytes) -> bool:
    r"""Whether a JPEG's header has EXIF or XMP, where its orientation may stand, or does not end in these bytes.

    >>> may_be_turned(b"\xff\xd8" b"\xff\xe0\x00\x04??" b"\xff\xda")
    False
    >>> may_be_turned(b"\xff\xd8" b"\xff\xe1\x00\x04??" b"\xff\xda")
    True
    """
    place = len(MAGIC) - 1
    while head[place : place + 1] == b"\xff" and place + 1 < len(head):
        marker = head[place + 1]
        if marker == _SCAN:
            return False
        if marker == _APP1 or marker in _BARE:
            return True
        # A marker may have any number of 0xFF before it.
        place += 1 if marker == 0xFF else 2 + int.from_bytes(head[place + 2 : place + 4], "big")
    return True


def _usual(data: bytes) -> ImageSize | None:
    from PIL import Image

    if _library() is None or not data.startswith(MAGIC):
        return None
    try:
        height, width, colours, _ = _library().decode_jpeg_header(data)
    except ValueError:
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
    from PIL import Image

    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (41, 67, 3), np.uint8))
    file = BytesIO()
    try:
        noise.save(file, "JPEG", quality=75)
        with Image.open(file) as picture:
            theirs = np.asarray(picture)
        return np.array_equal(library.decode_jpeg(file.getvalue(), "RGB"), theirs)
    except (OSError, ValueError):  # a Pillow without JPEGs, say
        return False
