"""One medium: whether it is there, whole, and what it is called. Headers and edges are read; `deep` decodes it all."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from lading.doctor.duplicates import content_digest
from lading.doctor.kinds import Problem
from lading.doctor.reading import CORRUPT, kind_of, refusal_text
from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.media import audio, image, measure, video
from lading.media.content import HEAD, MEDIUM, content_of
from lading.media.opening import name_of, open_picture, readable
from lading.records import AudioSize, ImageSize, MediaPart, Size, VideoSize

if TYPE_CHECKING:
    from PIL import Image

TINY = 8
"""Pixels on the shorter side below which nothing can be recognised."""
HUGE = 64_000_000
"""Pixels above which a picture is larger than any camera's or scanner's page."""
EXTREME = 50
"""A long side so many times the short one is a thread."""
CUT: Mapping[MediaKind, str] = {"image": "truncated_picture", "video": "truncated_clip"}
"""What a medium without its end is called."""
MAY_BE_UNUSUAL = ("gif", "webp", "png", "tiff")
"""Kinds of pictures that may hold several, or more than eight bits."""
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """What is known of a medium once it was examined."""

    problems: tuple[Problem, ...] = ()
    size: Size | None = None
    content: int = 0
    """A digest of what is in the file, for files; 0: none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Opened:
    """A medium whose bytes can be read."""

    part: MediaPart
    file: BinaryIO
    bytes: int
    content: str | None
    """What its first bytes say it is."""
    deep: bool

    @property
    def seems_cut(self) -> bool:
        """Whether the end of the file seems to be missing. Only decoding knows; what seems whole is not decoded."""
        check = _ENDS.get(self.content or "")
        return check is not None and check(self.file, self.bytes)


def examine_medium(part: MediaPart, *, deep: bool = False) -> Verdict:
    """Look at one medium; one that comes as a decoded object is only measured."""
    with warnings.catch_warnings():
        # Pillow warns of large pictures; so do we, by name.
        warnings.simplefilter("ignore")
        if isinstance(part.reference, tuple) and all(isinstance(frame, str) for frame in part.reference):
            return _frames(part, deep=deep)
        if not isinstance(part.reference, (str, Path, bytes)):
            return _measured(part)
        return _stored(part, deep=deep)


def _stored(part: MediaPart, *, deep: bool) -> Verdict:
    try:
        source = readable(part)
    except SkipSample as skip:
        return Verdict(problems=(_refusal(part, skip),))
    try:
        with Path(source).open("rb") if isinstance(source, str) else source as file:
            size = file.seek(0, 2)
            if not size:
                return Verdict(problems=(Problem("empty_media", f"{part.kind} {name_of(part)} of 0 bytes"),))
            file.seek(0)
            opened = Opened(part=part, file=file, bytes=size, content=content_of(file.read(HEAD)), deep=deep)
            measured, problems = _checked(opened)
            content = content_digest(file, size) if isinstance(source, str) else 0
    except OSError as error:
        detail = f"{part.kind} {name_of(part)} that cannot be read ({error.strerror or error})"
        return Verdict(problems=(Problem("unreadable_medium", detail),))
    return Verdict(problems=tuple(problems), size=measured, content=content)


def _checked(opened: Opened) -> tuple[Size | None, list[Problem]]:
    medium, content = opened.part.kind, opened.content
    try:
        size = measure(opened.part)
    except SkipSample as skip:
        refusal = _refusal(opened.part, skip)
        kind = refusal.kind
        # Of a file that is what it should be, but has no end, that is the reason why it cannot be read.
        if kind == CORRUPT[medium] and MEDIUM.get(content or "") == medium and opened.seems_cut:
            kind = CUT.get(medium, kind)
        return None, [Problem(kind, refusal.detail + (f"; its first bytes look like {content}" if content else ""))]
    return size, [*_CHECKS[medium](opened, size), *_misnamed(opened)]


def _picture(opened: Opened, size: Size) -> Iterator[Problem]:
    assert isinstance(size, ImageSize)
    name, shape = name_of(opened.part), f"{size.width}×{size.height} pixels"
    short, long = sorted((size.height, size.width))
    if short < TINY:
        yield Problem("tiny_picture", f"{name} of {shape}")
    if short * long > HUGE:
        yield Problem("huge_picture", f"{name} of {shape}")
    if long > EXTREME * short:
        yield Problem("extreme_shape", f"{name} of {shape}")
    broken = list(_decoded(opened, CUT["image"], lambda: image.decode(opened.part)))
    yield from broken
    if not broken and opened.content in MAY_BE_UNUSUAL:
        yield from _unusual(opened.part)


def _clip(opened: Opened, size: Size) -> Iterator[Problem]:
    assert isinstance(size, VideoSize)
    if size.frames < 1 or size.fps <= 0:
        yield Problem("empty_clip", f"{name_of(opened.part)} with {size.frames} frames at {size.fps:g} a second")
        return
    if size.frames == 1:
        yield Problem("short_clip", f"{name_of(opened.part)} of one frame")
    yield from _decoded(opened, CUT["video"], lambda: video.decode(opened.part, [size.frames - 1]))


def _sound(opened: Opened, size: Size) -> Iterator[Problem]:
    assert isinstance(size, AudioSize)
    if size.samples < 1:
        yield Problem("empty_sound", f"{name_of(opened.part)} without a sample of sound")
    yield from _decoded(opened, "undecodable_media", lambda: audio.decode(opened.part, size.rate))


_CHECKS: Mapping[MediaKind, Callable[[Opened, Size], Iterator[Problem]]] = {
    "image": _picture,
    "video": _clip,
    "audio": _sound,
}


def _decoded(opened: Opened, cut: str, decode: Callable[[], object]) -> Iterator[Problem]:
    """Decode what seems cut, to be sure; with `deep`, everything."""
    suspect = opened.seems_cut
    if not (suspect or opened.deep):
        return
    try:
        decode()
    except SkipSample as skip:
        refusal = _refusal(opened.part, skip)
        broken = cut if suspect else "undecodable_media"
        yield Problem(broken if skip.reason == Reason.CORRUPT_MEDIA else refusal.kind, refusal.detail)


def _unusual(part: MediaPart) -> Iterator[Problem]:
    """What of a whole picture the model does not see as its author does."""
    with open_picture(part, readable(part)) as picture:
        if picture.mode.startswith("I") or picture.mode == "F":
            yield Problem("deep_picture", f"{name_of(part)} of Pillow's mode {picture.mode}")
        if _moves(picture):
            yield Problem("animated_picture", f"{name_of(part)} holds several pictures")


def _moves(picture: Image.Image) -> bool:
    try:
        picture.seek(1)
    except (EOFError, OSError, SyntaxError, ValueError):
        return False
    return True


def _misnamed(opened: Opened) -> Iterator[Problem]:
    name = opened.part.reference
    wanted = named_content(str(name)) if isinstance(name, (str, Path)) else None
    if opened.content is not None and wanted is not None and opened.content != wanted:
        yield Problem("misnamed_media", f"{name_of(opened.part)} is {opened.content}, not {wanted}")


def _frames(part: MediaPart, *, deep: bool) -> Verdict:
    """A clip as a list of pictures: each problem once, and what they are together."""
    assert isinstance(part.reference, tuple)
    found: dict[str, Problem] = {}
    for frame in part.reference:
        for problem in _stored(MediaPart(kind="image", reference=frame, roots=part.roots), deep=deep).problems:
            found.setdefault(problem.kind, problem)
    if found:
        return Verdict(problems=tuple(found.values()))
    if not part.reference:
        return Verdict(problems=(Problem("empty_clip", "a clip given as a list of no frames"),))
    return _measured(part)


def _measured(part: MediaPart) -> Verdict:
    try:
        return Verdict(size=measure(part))
    except SkipSample as skip:
        return Verdict(problems=(_refusal(part, skip),))


def _refusal(part: MediaPart, skip: SkipSample) -> Problem:
    return Problem(kind_of(skip.reason, part.kind), refusal_text(skip))


def named_content(name: str) -> str | None:
    """What a file should be, by its name.

    >>> named_content("a/cat.JPG"), named_content("cat")
    ('jpeg', None)
    """
    return EXTENSIONS.get(name.rpartition(".")[2].lower())


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
