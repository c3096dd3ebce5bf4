"""Pictures: their size from the header, their pixels when they are needed.

A picture opened from a file or bytes is turned as its EXIF orientation says, like transformers' own `load_image` does;
a PIL image that is handed over is taken as it is.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lading.media import jpeg
from lading.media.opening import corrupt_as_skip, open_picture, readable
from lading.records import ImageSize, MediaPart

if TYPE_CHECKING:
    from PIL import Image

_ORIENTATION, _WIDTH = 0x0112, 0x0100
_TURNED_ORIENTATIONS = frozenset({5, 6, 7, 8})
"""EXIF orientations that swap height and width."""


def measure(part: MediaPart) -> ImageSize:
    """Height and width as the model will see them; no pixel is decoded."""
    from PIL import Image

    if isinstance(part.reference, Image.Image):
        return ImageSize(height=part.reference.height, width=part.reference.width)
    source = readable(part)
    with _errors_as_skip(part), open_picture(part, source) as picture:
        width, height = picture.size
        turned = _orientation(picture) in _TURNED_ORIENTATIONS and not _turned_by_pillow(picture)
    return ImageSize(height=width, width=height) if turned else ImageSize(height=height, width=width)


def decode(part: MediaPart, *, at_least: tuple[int, int] | None = None) -> Image.Image:
    """The picture, upright and in RGB.

    Where `at_least` this height and width are enough, a JPEG is decoded at a half, a quarter or an eighth of its size
    if that has them: much less work, and slightly other pixels.
    """
    from PIL import Image

    if isinstance(part.reference, Image.Image):
        with _errors_as_skip(part):
            return to_rgb(part.reference)
    source = readable(part)
    with _errors_as_skip(part), open_picture(part, source) as picture:
        return _upright(picture, at_least)


def pixels(part: MediaPart, *, at_least: tuple[int, int] | None = None) -> NDArray[np.uint8]:
    """The same picture's bytes [height, width, 3 or 4], the fourth of a pixel without a meaning."""
    from PIL import Image

    if at_least is not None or isinstance(part.reference, Image.Image):
        return np.array(decode(part, at_least=at_least))
    source = readable(part)
    with _errors_as_skip(part), open_picture(part, source) as picture:
        # Pillow has read the header; an ordinary JPEG that nothing turns is decoded without it.
        if picture.format in ("JPEG", "MPO") and _orientation(picture) == 1:
            found = jpeg.pixels(Path(source).read_bytes() if isinstance(source, str) else source.getvalue())
            if found is not None:
                return found
        return np.array(_upright(picture))


def _errors_as_skip(part: MediaPart) -> AbstractContextManager[None]:
    """Inside, what Pillow cannot read is a `SkipSample`."""
    from PIL import Image

    return corrupt_as_skip(part, OSError, SyntaxError, ValueError, Image.DecompressionBombError)


def _upright(picture: Image.Image, at_least: tuple[int, int] | None = None) -> Image.Image:
    from PIL import ImageOps

    orientation = _orientation(picture)
    if at_least is not None:
        height, width = at_least[::-1] if orientation in _TURNED_ORIENTATIONS else at_least
        picture.draft(picture.mode, (width, height))
    picture.load()
    return to_rgb(picture if orientation == 1 else ImageOps.exif_transpose(picture))


def _orientation(picture: Image.Image) -> int:
    """The EXIF orientation in the header. A PNG may hide one behind its pixels; asking Pillow for it decodes them all,
    so such a picture stays as it is stored, in its size and in its pixels alike.
    """
    if picture.format == "PNG" and "exif" not in picture.info:
        return 1
    return int(picture.getexif().get(_ORIENTATION, 1))


def _turned_by_pillow(picture: Image.Image) -> bool:
    """Whether the size that Pillow states of a TIFF is that of the turned picture already; other files' never is."""
    return picture.format == "TIFF" and picture.tag_v2.get(_WIDTH) != picture.width  # type: ignore[attr-defined]  # a TIFF has it


def to_rgb(picture: Image.Image) -> Image.Image:
    """Three channels of eight bits, whatever the file had (grey, palette, alpha, CMYK, 16 bit).

    What is transparent lies on white, as transformers' processors lay it: the colours below it, often black, were
    never meant to be seen.

    >>> from PIL import Image
    >>> to_rgb(Image.new("I;16", (2, 2), 65535)).getpixel((0, 0))
    (255, 255, 255)
    >>> to_rgb(Image.new("RGBA", (2, 2), (0, 0, 0, 51))).getpixel((0, 0))
    (204, 204, 204)
    """
    picture.load()  # one that was opened but not read yet may turn out to be cut off
    if picture.mode.startswith("I;16") or picture.mode == "I":
        # Pillow clips 16-bit values at 255 when it converts; a bright scan would become a white page.
        return _sixteen_bit_to_grey(picture).convert("RGB")
    if "A" in picture.getbands() or picture.info.get("transparency") is not None:
        return _on_white(picture.convert("RGBA"))
    return picture if picture.mode == "RGB" else picture.convert("RGB")


def _on_white(picture: Image.Image) -> Image.Image:
    from PIL import Image

    if picture.getchannel("A").getextrema() == (255, 255):  # most screenshots: saves two thirds of the time
        return picture.convert("RGB")
    return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")


def _sixteen_bit_to_grey(picture: Image.Image) -> Image.Image:
    from PIL import Image

    values = np.asarray(picture).astype(np.float32)
    return Image.fromarray(np.clip(values / 257.0, 0, 255).round().astype(np.uint8))
