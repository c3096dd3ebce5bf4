"""Turn a reference into something a decoder can read, and a decoder's failure into a named skip."""

from __future__ import annotations

import base64
import binascii
import io
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote_to_bytes

from lading.addresses import kind_of
from lading.errors import ABSENT, Reason, SkipSample
from lading.media.roots import lies_below
from lading.records import MediaPart

DATA_URL = "data:"
SHOWN = 200
"""Characters of a name that messages show."""


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


_ODD = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


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
