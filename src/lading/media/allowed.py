"""What may be opened: formats of pictures, containers and codecs of clips, kinds of sound files.

A row of a corpus may name any file, and libraries that open files do more than show pixels: Pillow starts Ghostscript
for PostScript, FFmpeg opens the files that a playlist names. So a medium is opened only as one of these, whatever its
name ends in. Nothing here starts a program, opens another file, or asks a network.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from lading.errors import Reason, SkipSample
from lading.media.content import MEDIUM, NO_MEDIA, content_of, first_bytes
from lading.media.opening import name_of
from lading.records import MediaPart

if TYPE_CHECKING:
    from av.container import InputContainer
    from PIL import Image

PICTURES: Final = ("JPEG", "MPO", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF")
"""Pillow's names of the formats that it is let try."""

CONTAINERS: Final = (
    *("mov", "matroska", "webm", "avi", "mpegts", "mpeg", "mpegvideo", "flv", "asf", "ogg", "gif", "mxf", "ivf"),
    *("h264", "hevc", "m4v", "obu"),
    *("wav", "mp3", "flac", "aac", "aiff", "w64", "caf"),
)
"""FFmpeg's names of the containers that it is let try: no playlists, no lists of files, no devices."""

CODECS: Final = (
    *("h264", "hevc", "av1", "vp8", "vp9", "mpeg4", "mpeg1video", "mpeg2video", "mjpeg", "gif", "theora"),
    *("h263", "flv1", "msmpeg4v1", "msmpeg4v2", "msmpeg4v3", "wmv1", "wmv2", "wmv3", "vc1"),
    *("prores", "dnxhd", "ffv1", "huffyuv", "rawvideo", "png", "dvvideo"),
    *("aac", "mp3", "mp2", "opus", "vorbis", "flac", "alac", "ac3", "eac3", "wmav1", "wmav2", "amr_nb", "amr_wb"),
    *("pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le", "pcm_f32le", "pcm_f64le", "pcm_u8"),
    *("pcm_mulaw", "pcm_alaw", "adpcm_ms", "adpcm_ima_wav", "adpcm_ima_qt"),
)
"""FFmpeg's names of the codecs whose decoders are used."""

SOUNDS: Final = ("wav", "flac", "ogg", "mp3", "aiff", "au", "caf", "w64")
"""Kinds of sound files, by their first bytes (`signatures.content_of`), that libsndfile is shown."""


@cache
def _picture_formats() -> tuple[str, ...]:
    """Those of `PICTURES` that this Pillow can read (AVIF is younger than the others)."""
    from PIL import Image

    Image.init()
    return tuple(name for name in PICTURES if name in Image.OPEN)


def open_picture(part: MediaPart, source: str | BinaryIO) -> Image.Image:
    """A picture, its header read by Pillow as one of the allowed formats alone."""
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(source, formats=_picture_formats())
    except UnidentifiedImageError as error:
        raise _refused(part, source, PICTURES) from error


@cache
def _decoders() -> str:
    """FFmpeg's names of the decoders of `CODECS`: one codec may have several."""
    from av.codec import Codec, codecs_available
    from av.codec.codec import UnknownCodecError

    found: set[str] = set()
    for name in codecs_available:
        with suppress(UnknownCodecError):
            codec = Codec(name, "r")
            found.update({codec.name} if codec.canonical_name in CODECS else ())
    return ",".join(sorted(found))


def open_clip(part: MediaPart, source: str | BinaryIO, *, timeout: float | None = None) -> InputContainer:
    """A clip, its header read by FFmpeg as one of the allowed containers alone, which may name no other file."""
    import av

    options = {
        "format_whitelist": ",".join(CONTAINERS),
        "protocol_whitelist": "file",
        "codec_whitelist": _decoders(),
    }
    try:
        return av.open(source, "r", timeout=timeout, container_options=options)
    except (av.error.InvalidDataError, av.error.ArgumentError) as error:
        raise _refused(part, source, CONTAINERS) from error


def refuse_other_codec(part: MediaPart, stream: Any) -> None:
    """Refuse a clip whose pictures, or whose sound where it is to be heard, are written by a codec that is not used."""
    codec = "(unknown)" if stream.codec_context is None else stream.codec_context.codec.canonical_name
    if codec not in CODECS:
        raise SkipSample(
            Reason.FORMAT_NOT_ALLOWED,
            found=f"{part.kind} {name_of(part)} written by the codec {codec}",
            wanted=f"one of {', '.join(CODECS)}",
        )


def refuse_other_sounds(part: MediaPart, source: str | BinaryIO) -> None:
    """Refuse a file that is no sound by its first bytes. (libsndfile cannot be told what to try.)"""
    if content_of(first_bytes(source)) not in SOUNDS:
        raise _refused(part, source, SOUNDS)


def _refused(part: MediaPart, source: str | BinaryIO, allowed: Iterable[str]) -> SkipSample:
    """Why a file was not opened: it is something else by its first bytes, or nobody can tell what it is."""
    found, name = content_of(first_bytes(source)), f"{part.kind} {name_of(part)}"
    wanted = f"one of {', '.join(allowed)}"
    if found is None or MEDIUM.get(found) == part.kind:
        return SkipSample(Reason.CORRUPT_MEDIA, found=f"{name} that cannot be read", wanted=wanted)
    reason = Reason.CORRUPT_MEDIA if found in NO_MEDIA else Reason.FORMAT_NOT_ALLOWED
    return SkipSample(reason, found=f"{name} that is {found}", wanted=wanted)
