"""Sound, through soundfile: its length from the header, its samples as one channel at the rate a model wants."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import MissingDependency
from lading.media.opening import corrupt_as_skip, readable
from lading.records import AudioSize, MediaPart


def measure(part: MediaPart) -> AudioSize:
    """Samples in one channel and samples a second; nothing is decoded."""
    soundfile = _soundfile()
    source = readable(part)
    with corrupt_as_skip(part, soundfile.LibsndfileError, OSError):
        header = soundfile.info(source)
    return AudioSize(samples=int(header.frames), rate=int(header.samplerate))


def decode(part: MediaPart, rate: int) -> NDArray[np.float32]:
    """The sound as one channel [samples] at `rate` samples a second."""
    soundfile = _soundfile()
    source = readable(part)
    with corrupt_as_skip(part, soundfile.LibsndfileError, OSError):
        samples, found_rate = soundfile.read(source, dtype="float32", always_2d=True)
    mono = samples.mean(axis=1)
    return mono if found_rate == rate else np.asarray(_soxr().resample(mono, found_rate, rate), dtype=np.float32)


def _soundfile() -> Any:
    try:
        import soundfile
    except ImportError as error:
        raise MissingDependency(package="soundfile", purpose="reading audio") from error
    return soundfile


def _soxr() -> Any:
    try:
        import soxr
    except ImportError as error:
        raise MissingDependency(package="soxr", purpose="resampling audio") from error
    return soxr
