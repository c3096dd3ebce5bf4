"""What a file is, by its first bytes, whatever its name ends in."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, Final

from lading.fields import MediaKind

HEAD: Final = 512
"""Bytes that tell what a file is."""

MEDIUM: Final[Mapping[str, MediaKind]] = {
    **dict.fromkeys(("jpeg", "png", "gif", "webp", "bmp", "tiff", "ppm", "jpeg2000", "avif"), "image"),
    **dict.fromkeys(("mp4", "matroska", "avi", "flv", "asf", "mpeg", "mpegts", "mxf", "ivf"), "video"),
    **dict.fromkeys(("wav", "flac", "ogg", "mp3", "aiff", "au", "caf", "w64"), "audio"),
}
"""The kinds of files that hold media, and of which kind. (Sound may come in a clip's container, and a GIF may move.)"""

HTML_PAGE: Final = "an HTML page"
LFS_POINTER: Final = "a Git LFS pointer (run git lfs pull)"
NO_MEDIA: Final = (HTML_PAGE, LFS_POINTER)
"""What stands in a medium's place when it was not really fetched."""

_STARTS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\xff\xd8\xff", "jpeg"),
    (b"\x89PNG\r\n\x1a\n", "png"),
    (b"GIF8", "gif"),
    (b"BM", "bmp"),
    *((start, "tiff") for start in (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")),
    *((start, "jpeg2000") for start in (b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  \r\n\x87\n")),
    (b"\x1aE\xdf\xa3", "matroska"),
    (b"FLV\x01", "flv"),
    (b"\x30\x26\xb2\x75\x8e\x66\xcf\x11", "asf"),
    (b"\0\0\x01\xba", "mpeg"),
    (b"\0\0\x01\xb3", "mpeg"),
    (b"\x06\x0e\x2b\x34\x02\x05\x01\x01", "mxf"),
    (b"DKIF", "ivf"),
    (b"fLaC", "flac"),
    (b"OggS", "ogg"),
    (b"ID3", "mp3"),
    (b".snd", "au"),
    (b"caff", "caf"),
    (b"riff\x2e\x91\xcf\x11", "w64"),
    (b"%!PS", "PostScript (EPS)"),
    (b"\xc5\xd0\xd3\xc6", "PostScript (EPS)"),
    (b"%PDF", "a PDF"),
    (b"8BPS", "a Photoshop file"),
    (b"\xd7\xcd\xc6\x9a", "a Windows drawing (WMF)"),
    *((start, "an icon") for start in (b"\0\0\x01\0", b"icns")),
    *((start, "a JPEG XL picture") for start in (b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")),
    (b"v/1\x01", "an OpenEXR picture"),
    (b"DDS ", "a texture (DDS)"),
    (b"#EXTM3U", "a playlist (HLS)"),
    (b"ffconcat", "a list of files (ffconcat)"),
    (b"v=0", "the description of a stream (SDP)"),
    (b"[playlist]", "a playlist (PLS)"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "packed by gzip"),
    (b"version https://git-lfs", LFS_POINTER),
)
_BOXES: Final = {
    **dict.fromkeys((b"avif", b"avis"), "avif"),
    **dict.fromkeys((b"heic", b"heix", b"hevc", b"mif1", b"msf1"), "an HEIC picture"),
    b"crx ": "a camera's raw picture",
}
"""What a file of boxes is that is no MP4, by its major brand."""
_CHUNKS: Final = {b"WEBP": "webp", b"AVI ": "avi", b"WAVE": "wav"}
_TEXTS: Final = (
    (b"<!doctype html", HTML_PAGE),
    (b"<html", HTML_PAGE),
    (b"<svg", "an SVG drawing"),
    (b"<mpd", "a playlist (DASH)"),
    (b"%!ps", "PostScript (EPS)"),
    (b"<?xml", "XML (an SVG drawing, say)"),
    (b"<!doctype", HTML_PAGE),
)
_PACKET: Final = 188
"""Bytes of a packet of an MPEG transport stream, each of which begins with a G."""


def content_of(head: bytes) -> str | None:
    r"""What a file is, by its first bytes: a kind of `MEDIUM`, or in words; `None` where they do not tell.

    >>> content_of(b"\xff\xd8\xff\xe0"), content_of(b"%!PS-Adobe-3.0 EPSF"), content_of(b"?")
    ('jpeg', 'PostScript (EPS)', None)
    """
    if head[:4] in (b"RIFF", b"RIFX", b"RF64"):
        return _CHUNKS.get(head[8:12])
    if head[:4] == b"FORM" and head[8:12] in (b"AIFF", b"AIFC"):
        return "aiff"
    if head[4:8] in (b"ftyp", b"moov", b"mdat", b"wide", b"free"):
        return _BOXES.get(head[8:12], "mp4") if head[4:8] == b"ftyp" else "mp4"
    found = next((name for start, name in _STARTS if head.startswith(start)), None)
    if found is not None:
        return found
    if head[:1] == b"P" and head[1:2] in b"123456" and head[2:3].isspace():
        return "ppm"
    if head[:1] == b"G" and head[_PACKET : _PACKET + 1] == b"G":
        return "mpegts"
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    found = next((name for start, name in _TEXTS if text.startswith(start)), None)
    return "mp3" if found is None and _is_mpeg_sound(head.lstrip(b"\0")) else found


def _is_mpeg_sound(head: bytes) -> bool:
    """Whether it begins with the header of a frame of MPEG sound (layer I to III, with a known bit rate)."""
    if len(head) < 3 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    return head[1] >> 1 & 3 != 0 and head[1] >> 3 & 3 != 1 and head[2] >> 4 not in (0, 15)


def first_bytes(source: str | Path | BinaryIO) -> bytes:
    """The beginning of a file; one that is open is left where it was."""
    if isinstance(source, (str, Path)):
        with Path(source).open("rb") as file:
            return file.read(HEAD)
    place = source.tell()
    source.seek(0)
    head = source.read(HEAD)
    source.seek(place)
    return head
