"""What may be opened, and how a reference becomes something a decoder can read, or a named skip.

A row of a corpus may name any file, and whoever wrote it may name absolute ones, `../` ones, links; and libraries that
open files do more than show pixels: Pillow starts Ghostscript for PostScript, FFmpeg opens the files that a playlist
names. So a medium is opened only as one of the formats, containers and codecs below, whatever its name ends in. Nothing
here starts a program, opens another file, or asks a network. Without roots every local file may be read; with them, a
file is opened only if it lies below one of them once every link on the way is followed.
"""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import unquote_to_bytes

from lading.addresses import kind_of
from lading.errors import ABSENT, Reason, SkipSample
from lading.media.content import MEDIUM, NO_MEDIA, content_of, first_bytes
from lading.records import MediaPart

if TYPE_CHECKING:
    from av.container import InputContainer
    from PIL import Image

DATA_URL = "data:"
SHOWN = 200
"""Characters of a name that messages show."""
_ODD = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
_SNAPSHOT = re.compile(r"(.*/(?:models|datasets|spaces)--[^/]+)/snapshots/")
"""A folder in the hub's cache whose files are links to the `blobs` beside it."""
deadline: ContextVar[tuple[float, float] | None] = ContextVar("deadline", default=None)
"""When the time of the sample in hand is over, on the clock that never jumps, and how many seconds there were."""

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
"""Kinds of sound files, by their first bytes (`content.content_of`), that libsndfile is shown."""


def readable(part: MediaPart) -> str | io.BytesIO:
    r"""A path that exists, or the bytes as a file, those of a data URL too.

    >>> from lading.records import MediaPart
    >>> readable(MediaPart(kind="image", reference="data:image/png;base64,iVBORw==")).read()
    b'\x89PNG'
    """
    reference = part.reference
    if isinstance(reference, bytes):
        return io.BytesIO(reference)
    if isinstance(reference, str) and reference.startswith(DATA_URL):
        return io.BytesIO(_data_bytes(part, reference))
    if isinstance(reference, (str, Path)):
        if "://" in str(reference)[:16]:
            # Fetched, it would be fetched by every worker in every epoch, and be another one tomorrow.
            raise SkipSample(
                Reason.UNSUPPORTED_MEDIA,
                found=f"{part.kind} at {kind_of(str(reference))} {name_of(part)}",
                wanted="a file on a local disk, or bytes (nothing is fetched: copy it there first, and give its path)",
            )
        refuse_outside(part)
        _refuse_odd_files(part, reference)
        return str(reference)
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"{part.kind} given as {type(reference).__name__}",
        wanted="a path, bytes or a decoded object of its kind",
    )


def refuse_outside(part: MediaPart) -> None:
    """Refuse a medium of which a file lies outside the roots that it must lie below, if there are any."""
    if part.roots and not all(lies_below(path, part.roots) for path in files_of(part)):
        raise SkipSample(
            Reason.OUTSIDE_MEDIA_ROOTS,
            found=f"{part.kind} {name_of(part)} outside the media roots",
            wanted=f"a file below {' or '.join(part.roots)}",
        )


def files_of(part: MediaPart) -> list[str]:
    """The files that a medium names: one, or the frames of a clip; none where its bytes or pixels are at hand, or where
    no file can have that name.
    """
    references = part.reference if isinstance(part.reference, tuple) else (part.reference,)
    paths = [str(own) for own in references if isinstance(own, (str, Path))]
    return [path for path in paths if not path.startswith(DATA_URL) and "://" not in path[:16] and _can_be(path)]


def _can_be(path: str) -> bool:
    """Whether a file may be called so at all: not with a zero byte in its name, nor with half a character."""
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _data_bytes(part: MediaPart, url: str) -> bytes:
    header, _, body = url.partition(",")
    try:
        return base64.b64decode(body, validate=True) if header.endswith(";base64") else unquote_to_bytes(body)
    except (binascii.Error, ValueError) as error:
        raise SkipSample(
            Reason.CORRUPT_MEDIA, found=f"{part.kind} {name_of(part)} that is not base64 ({error})", wanted="base64"
        ) from error


def _refuse_odd_files(part: MediaPart, path: str | Path) -> None:
    # To open a pipe that nobody writes to takes forever, and reading a device may have no end.
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno not in ABSENT:
            # It may well be there: behind a folder that may not be entered, say, or on a disk that does not answer.
            raise SkipSample(
                Reason.CORRUPT_MEDIA, found=f"{part.kind} {name_of(part)} that cannot be read ({error.strerror})"
            ) from None
        raise SkipSample(
            Reason.MISSING_MEDIA, found=f"no {part.kind} file {name_of(part)}", wanted="a file that exists"
        ) from None
    if not stat.S_ISREG(mode):
        raise SkipSample(
            Reason.CORRUPT_MEDIA,
            found=f"{part.kind} {name_of(part)} that is {_ODD.get(stat.S_IFMT(mode), 'a device')}",
            wanted="a file with bytes in it",
        )


def name_of(part: MediaPart) -> str:
    """How to call a medium in a message."""
    reference = part.reference
    if isinstance(reference, str) and reference.startswith(DATA_URL):
        return f"<data URL of {len(reference):,} characters>"
    if isinstance(reference, (str, Path)):
        name = str(reference)
        return name if len(name) <= SHOWN else f"{name[:SHOWN]}…"
    return f"<{len(reference)} bytes>" if isinstance(reference, bytes) else f"<{type(reference).__name__}>"


@contextmanager
def corrupt_as_skip(part: MediaPart, *errors: type[Exception]) -> Iterator[None]:
    """Inside, a decoder's own `errors` become one `SkipSample` that names the medium."""
    try:
        yield
    except errors as error:
        # Where an object stood in memory is another place in every run.
        detail = re.sub(r" at 0x[0-9a-f]+", "", " ".join(str(error).split()))[:200] or type(error).__name__
        raise SkipSample(
            Reason.CORRUPT_MEDIA, found=f"{part.kind} {name_of(part)} that cannot be read ({detail})"
        ) from error


def lies_below(path: str, roots: Sequence[str]) -> bool:
    """Whether a file lies below one of these folders, every link followed.

    >>> lies_below("/srv/pictures/../secret.png", ["/srv/pictures"]), lies_below("/srv/pictures/a.png", ["/srv"])
    (False, True)
    """
    resolved = os.path.realpath(path)
    return any(resolved.startswith(root) for root in _resolved(tuple(roots)))


@lru_cache(maxsize=64)
def _resolved(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The folders behind these, and the blobs that belong to those that are snapshots of the hub, with a `/` at the
    end.
    """
    folders = [os.path.join(os.path.realpath(root), "") for root in roots]
    snapshots = [found for folder in folders if (found := _SNAPSHOT.match(folder))]
    return (*folders, *(os.path.join(found.group(1), "blobs", "") for found in snapshots))


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


def seconds_left(name: str) -> float | None:
    """What is left for the medium `name`, if there is a limit; nothing left is a named skip.

    >>> before = deadline.set((time.monotonic() + 60, 60))
    >>> 50 < seconds_left("clip.mp4") <= 60
    True
    >>> deadline.reset(before)
    """
    if (limit := deadline.get()) is None:
        return None
    if (left := limit[0] - time.monotonic()) <= 0:
        raise took_too_long(limit[1], name)
    return left


def took_too_long(seconds: float, name: str) -> SkipSample:
    """The refusal of what took too long."""
    return SkipSample(
        Reason.DECODE_TIMEOUT,
        found=f"{name} still being read after {seconds:g} s",
        wanted="a sample that is read within that time (decode_seconds)",
    )
