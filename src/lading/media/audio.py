"""Sound, through soundfile: its length from the header, its samples as one channel at the rate a model wants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import MissingDependency
from lading.media.opening import corrupt_as_skip, readable, refuse_other_sounds
from lading.records import AudioSize, MediaPart


def measure(part: MediaPart) -> AudioSize:
    """Samples in one channel and samples a second; nothing is decoded."""
    if (given := _given_samples(part)) is not None:
        return AudioSize(samples=len(given[0]), rate=given[1])
    with _opened(part) as sound:
        return AudioSize(samples=int(sound.frames), rate=int(sound.samplerate))


def samples_at(size: AudioSize, rate: int) -> int:
    """How many samples a sound has at another rate.

    >>> samples_at(AudioSize(samples=44_100, rate=44_100), 16_000)
    16000
    """
    return -(-size.samples * rate // size.rate)


def decode(part: MediaPart, rate: int) -> NDArray[np.float32]:
    """The sound as one channel [samples] at `rate` samples a second, exactly as long as its header promised."""
    mono, found_rate = _given_samples(part) or _read(part)
    heard = mono if found_rate == rate else np.asarray(_soxr().resample(mono, found_rate, rate), dtype=np.float32)
    # A resampler may round by one, and a compressed file end some samples early; the count was made from the header.
    wanted = samples_at(measure(part), rate)
    return np.pad(heard[:wanted], (0, max(0, wanted - len(heard))))


def _read(part: MediaPart) -> tuple[NDArray[np.float32], int]:
    with _opened(part) as sound:
        return sound.read(dtype="float32", always_2d=True).mean(axis=1), int(sound.samplerate)


@contextmanager
def _opened(part: MediaPart) -> Iterator[Any]:
    """A sound file whose header was read; what libsndfile cannot read of it is a `SkipSample`."""
    soundfile = _soundfile()
    source = readable(part)
    with (
        corrupt_as_skip(part, soundfile.LibsndfileError, OSError),
        Path(source).open("rb", buffering=0) if isinstance(source, str) else source as file,
    ):
        refuse_other_sounds(part, file)
        # By its number, a file has no name: of one that ends in `.raw`, soundfile would ask for the rate, whatever is
        # in it.
        try:
            sound = soundfile.SoundFile(file.fileno() if isinstance(source, str) else file, closefd=False)
        except soundfile.LibsndfileError as error:
            # That number is another each time; what was wrong with a file is said in the same words again.
            error.prefix = f"Error opening {source!r}: " if isinstance(source, str) else "Error opening it: "
            raise
        with sound:
            yield sound


def _given_samples(part: MediaPart) -> tuple[NDArray[np.float32], int] | None:
    """A sound that came decoded: (samples, rate), or as `datasets` gives it, {"array": …, "sampling_rate": …}."""
    reference = part.reference
    if isinstance(reference, Mapping) and {"array", "sampling_rate"} <= set(reference):
        reference = (reference["array"], reference["sampling_rate"])
    if not (isinstance(reference, tuple) and len(reference) == 2 and isinstance(reference[0], np.ndarray)):
        return None
    samples = np.asarray(reference[0], dtype=np.float32)
    # The longer axis is time, whichever way the channels lie.
    return (samples if samples.ndim == 1 else samples.mean(axis=int(np.argmin(samples.shape)))), int(reference[1])


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
