"""What a medium measures, and what it takes up in a document."""

from __future__ import annotations

from dataclasses import dataclass

from lading.fields import MediaKind


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageSize:
    """Height and width as shown (after the EXIF rotation), read from the header."""

    height: int
    width: int


@dataclass(frozen=True, kw_only=True, slots=True)
class AudioSize:
    """Number of samples in one channel, and samples per second."""

    samples: int
    rate: int


@dataclass(frozen=True, kw_only=True, slots=True)
class VideoSize:
    """Number of frames in the stream, their height and width, and the frame rate."""

    frames: int
    height: int
    width: int
    fps: float
    sound: AudioSize | None = None
    """The clip's own sound track, where it is to be heard."""


Size = ImageSize | VideoSize | AudioSize


@dataclass(frozen=True, kw_only=True, slots=True)
class Footprint:
    """What one medium takes up, known from its size alone. Law: the processor's own output has exactly these rows."""

    kind: MediaKind
    runs: tuple[int, ...]
    """How often each pad token in the medium's text is repeated."""
    rows: int
    """Rows on the medium's patch axis: patches, tiles, crops, or frames of sound."""
    grid: tuple[int, int, int] = (1, 1, 1)
    """(t, h, w) in patches, for families that have such a grid."""
    text: str | None = None
    """What stands in place of the mark, each run of pads written once; `None`: what the family's `Medium` says."""
    frames: tuple[int, ...] = ()
    """For a video: which frames of the stream are used."""
    seconds: float = 0.0
    """For a video: seconds between two rows of the grid's t."""
    sound: Footprint | None = None
    """For a video that is heard: what its sound track takes up, between the frames."""
    heard: tuple[int, ...] = ()
    """Which of the runs are sound."""

    @property
    def pairs(self) -> int:
        """Pairs of rows that may see each other in the tower: those of a frame. A tile is a row that sees itself."""
        time, height, width = self.grid
        return time * (height * width) ** 2 if time * height * width == self.rows else self.rows


@dataclass(frozen=True, kw_only=True, slots=True)
class PixelScale:
    """How the bytes of a tensor become numbers. Law: (byte · factor - mean) / std, by channel, is the
    processor's own.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    factor: float
    repeat: int = 1
    """How often the model is shown each frame of a patch: a still picture fills the time of a clip's patch."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumSpan:
    """Where a medium's pad tokens lie in its document. Law: runs ascend and do not overlap."""

    footprint: Footprint
    runs: tuple[tuple[int, int], ...]

    @property
    def start(self) -> int:
        """First token that belongs to the medium."""
        return self.runs[0][0]

    @property
    def stop(self) -> int:
        """One past its last token."""
        return self.runs[-1][1]
