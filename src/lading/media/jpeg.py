"""JPEGs straight from libjpeg-turbo, where its answer is surely Pillow's, to the bit.

Pillow asks the same library for one line after the other and puts each in its place. Asked for the whole picture, with
a fourth byte for each pixel, which torch's resize kernel wants anyway, it is done in three quarters of the time. What
is odd about a JPEG (other colours than usual, bytes that do not belong there) is left to Pillow, which has read the
header before and found nothing in it that turns the picture.
"""

from __future__ import annotations

from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\xff\xd8\xff"
_LIBRARY = 3
"""From this version of libjpeg-turbo on, progressive JPEGs whose last scans are missing are smoothed alike."""


def pixels(data: bytes) -> NDArray[np.uint8] | None:
    """The pixels [height, width, 4] of a JPEG in the usual colours, as they are stored; `None`: ask Pillow."""
    if not _is_usual(data):
        return None
    try:
        found: NDArray[np.uint8] = _library().decode_jpeg(data, "RGBX")
    except ValueError:
        # Cut off, or with more in it than belongs there: Pillow forgives the second, and says which it is.
        return None
    return found


def _is_usual(data: bytes) -> bool:
    """Whether these are the colours of a photograph, and no more pixels than Pillow allows."""
    from PIL import Image

    if _library() is None or not data.startswith(MAGIC):
        return False
    try:
        height, width, colours, _ = _library().decode_jpeg_header(data)
    except (ValueError, KeyError):  # KeyError: its table of names lacks a way of leaving colours out
        return False
    largest = Image.MAX_IMAGE_PIXELS
    return colours == "YCbCr" and (largest is None or height * width <= largest)


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
