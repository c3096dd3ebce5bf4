"""What a file should be, by its name; and whether its end is missing, by its last bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import BinaryIO

EXTENSIONS: Mapping[str, str] = {
    **dict.fromkeys(("jpg", "jpeg", "jpe", "jfif"), "jpeg"),
    **dict.fromkeys(("tif", "tiff"), "tiff"),
    **dict.fromkeys(("mp4", "m4v", "mov", "m4a", "3gp"), "mp4"),
    **dict.fromkeys(("mkv", "webm"), "matroska"),
    **dict.fromkeys(("ppm", "pgm", "pbm", "pnm"), "ppm"),
    **dict.fromkeys(("jp2", "j2k", "jpx"), "jpeg2000"),
    **dict.fromkeys(("wmv", "asf"), "asf"),
    **dict.fromkeys(("mpg", "mpeg"), "mpeg"),
    **dict.fromkeys(("aif", "aiff"), "aiff"),
    **{name: name for name in ("png", "gif", "webp", "bmp", "avif", "avi", "flv", "wav", "flac", "ogg", "mp3")},
}
"""What a file should be, by the end of its name."""


def promised(name: str) -> str | None:
    """What a file should be, by its name.

    >>> promised("a/cat.JPG"), promised("cat")
    ('jpeg', None)
    """
    return EXTENSIONS.get(name.rpartition(".")[2].lower())


def seems_cut(content: str | None, file: BinaryIO, size: int) -> bool:
    """Whether the end of a file seems to be missing. Only decoding knows; what seems whole here is not decoded."""
    check = _ENDS.get(content or "")
    return check is not None and check(file, size)


def _jpeg_cut(file: BinaryIO, size: int) -> bool:
    """No mark of its end behind the header (a thumbnail there has its own). What was appended does no harm."""
    file.seek(max(0, size - 64))
    if file.read().rstrip(b"\0\r\n ").endswith(b"\xff\xd9"):
        return False
    file.seek(0)
    everything = file.read()
    place = 2
    while place + 4 <= len(everything) and everything[place] == 0xFF and everything[place + 1] != 0xDA:
        place += 2 + int.from_bytes(everything[place + 2 : place + 4])
    return everything.find(b"\xff\xd9", place) < 0


def _png_cut(file: BinaryIO, size: int) -> bool:
    file.seek(max(0, size - 4096))
    return b"IEND" not in file.read()


def _gif_cut(file: BinaryIO, size: int) -> bool:
    file.seek(max(0, size - 64))
    return not file.read().rstrip(b"\0").endswith(b";")


def _riff_cut(file: BinaryIO, size: int) -> bool:
    file.seek(4)
    length = int.from_bytes(file.read(4), "little")
    # What is written while it is recorded has no length, or all bits set.
    return length not in (0, 0xFFFFFFFF) and length + 8 > size + 1


def _bmp_cut(file: BinaryIO, size: int) -> bool:
    file.seek(2)
    return int.from_bytes(file.read(4), "little") > size


def _boxes_cut(file: BinaryIO, size: int) -> bool:
    """Whether the last box of an MP4 ends behind the file."""
    place = 0
    while place + 8 <= size:
        file.seek(place)
        header = file.read(16)
        length = int.from_bytes(header[:4])
        if length == 1:
            length = int.from_bytes(header[8:16])
        if length < 8:
            # 0: to the end of the file, whatever that is.
            return False
        place += length
    return place > size


_ENDS: Mapping[str, Callable[[BinaryIO, int], bool]] = {
    "jpeg": _jpeg_cut,
    "png": _png_cut,
    "gif": _gif_cut,
    "webp": _riff_cut,
    "avi": _riff_cut,
    "bmp": _bmp_cut,
    "mp4": _boxes_cut,
}
