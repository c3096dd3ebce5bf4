"""Clips, through PyAV: their size without decoding a picture, and just the frames that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lading.errors import MissingDependency, Reason, SkipSample
from lading.media import image
from lading.media.audio import samples_at
from lading.media.opening import corrupt_as_skip, name_of, open_clip, readable, refuse_other_codec, seconds_left
from lading.records import AudioSize, MediaPart, VideoSize

if TYPE_CHECKING:
    from av.container import InputContainer

T = TypeVar("T")
HEARD = "use_audio_in_video"
"""The option of a clip that says its own sound track is to be heard."""
FRAME_LIST_FPS = 2.0
"""Frames given one by one carry no clock; `{"path": […], "fps": …}` says otherwise."""


def measure(part: MediaPart) -> VideoSize:
    """Frames, height, width and frame rate. Packets are counted, not decoded, where the header does not say."""
    frames = _frame_parts(part)
    if frames:
        sizes = [image.measure(frame) for frame in frames]
        size = sizes[0]
        if any(other != size for other in sizes):
            raise SkipSample(
                Reason.CORRUPT_MEDIA,
                found=f"frames of {len(set(sizes))} sizes in one clip, {name_of(frames[0])} first",
                wanted="one size",
            )
        return VideoSize(frames=len(frames), height=size.height, width=size.width, fps=_given_fps(part))
    with _opened(part) as container:
        stream = container.streams.video[0]
        rate = stream.average_rate or stream.guessed_rate
        height, width, count = stream.height, stream.width, stream.frames
        sound = _sound_track(part, container) if part.options.get(HEARD) else None
        if not count:
            count = sum(1 for packet in _in_time(part, container.demux(stream)) if packet.size)
    return VideoSize(frames=count, height=height, width=width, fps=float(rate) if rate else 0.0, sound=sound)


def decode_sound(part: MediaPart, rate: int) -> NDArray[np.float32]:
    """A clip's sound track as one channel [samples] at `rate`, exactly as long as its header promised."""
    size = measure(part).sound
    assert size is not None, "only a clip that was measured as heard is decoded"
    resampler = _pyav().AudioResampler(format="flt", layout="mono", rate=rate)
    pieces: list[NDArray[np.float32]] = []
    with _opened(part) as container:
        for frame in _in_time(part, container.decode(audio=0)):
            pieces += [piece.to_ndarray().reshape(-1) for piece in resampler.resample(frame)]
        pieces += [piece.to_ndarray().reshape(-1) for piece in resampler.resample(None)]
    heard = np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.float32)
    wanted = samples_at(size, rate)
    return np.pad(heard[:wanted], (0, max(0, wanted - len(heard)))).astype(np.float32)


def _sound_track(part: MediaPart, container: InputContainer) -> AudioSize:
    if not container.streams.audio:
        raise SkipSample(
            Reason.MISSING_MEDIA,
            found=f"no sound track in {name_of(part)}",
            wanted="one, since the clip is to be heard",
        )
    stream = container.streams.audio[0]
    refuse_other_codec(part, stream)
    if stream.duration is not None and stream.time_base is not None:
        seconds = float(stream.duration * stream.time_base)
    else:
        seconds = (container.duration or 0) / 1_000_000
    return AudioSize(samples=round(seconds * stream.rate), rate=stream.rate)


def decode(part: MediaPart, wanted: Sequence[int]) -> NDArray[np.uint8]:
    """The wanted frames as [frames, height, width, 3]; one may be wanted twice."""
    listed = _frame_parts(part)
    if listed:
        return np.stack([np.asarray(image.decode(listed[index])) for index in wanted])
    chosen = set(wanted)
    pictures: dict[int, NDArray[np.uint8]] = {}
    with _opened(part) as container:
        for index, frame in enumerate(_in_time(part, container.decode(video=0))):
            if index in chosen:
                pictures[index] = np.asarray(frame.to_ndarray(format="rgb24"), dtype=np.uint8)
            if len(pictures) == len(chosen):
                break
    if len(pictures) < len(chosen):
        raise SkipSample(
            Reason.CORRUPT_MEDIA,
            found=f"video {name_of(part)} that ends before frame {max(chosen)}",
            wanted=f"{len(chosen)} frames of it, as its header promises",
        )
    return np.stack([pictures[index] for index in wanted])


@contextmanager
def _opened(part: MediaPart) -> Iterator[InputContainer]:
    av = _pyav()
    source, patience = readable(part), seconds_left(f"video {name_of(part)}")
    with (
        corrupt_as_skip(part, av.error.FFmpegError, OSError, ValueError),
        _late_as_skip(part, av.error.ExitError),
        open_clip(part, source, timeout=patience) as container,
    ):
        if not container.streams.video:
            raise SkipSample(Reason.CORRUPT_MEDIA, found=f"no video stream in {name_of(part)}", wanted="one")
        refuse_other_codec(part, container.streams.video[0])
        container.streams.video[0].thread_type = "AUTO"
        if parent_process() is not None:
            # A worker among others: threads would only contend with theirs for the same cores.
            container.streams.video[0].codec_context.thread_count = 1
        yield container


@contextmanager
def _late_as_skip(part: MediaPart, interrupted: type[Exception]) -> Iterator[None]:
    """FFmpeg gives up by itself when its time is over; then ours is over too."""
    try:
        yield
    except interrupted:
        seconds_left(f"video {name_of(part)}")
        raise


def _in_time(part: MediaPart, steps: Iterable[T]) -> Iterator[T]:
    """The steps of a decoder, as long as there is time for them."""
    name = f"video {name_of(part)}"
    for step in steps:
        seconds_left(name)
        yield step


def _frame_parts(part: MediaPart) -> list[MediaPart]:
    if not isinstance(part.reference, (list, tuple)):
        return []
    return [MediaPart(kind="image", reference=frame, roots=part.roots) for frame in part.reference]


def _given_fps(part: MediaPart) -> float:
    return float(part.options.get("fps", FRAME_LIST_FPS))


def _pyav() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingDependency(package="av", purpose="reading video") from error
    return av
