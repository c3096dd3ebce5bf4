"""Footprints by asking the processor itself, with blank media of the same sizes.

For a family whose arithmetic is not written down here, what a picture takes up is still a function of its size (and of
how many stand beside it), so a blank one of that size tells: no pixel of the user's is decoded to count. Answers are
kept by size; corpora repeat theirs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.media.geometry.clips import refuse_still_clips
from lading.private_names import image_processing, processor_options, token_counting, video_processing
from lading.records import Footprint, ImageSize, Size, VideoSize

KEPT = 50_000
"""Answers that are kept at a time. Most corpora have fewer sizes; with more, memory must not grow."""

Answer = tuple[list[str], list[int]]
"""For each medium, the text that replaces its mark, and its rows."""
Rows = Callable[[Mapping[str, Any]], Sequence[int]]
"""Reads each medium's rows on its patch axis out of what a processor made."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Probe:
    """Footprints of one kind of medium, by asking."""

    kind: MediaKind
    pad: str
    ask: Callable[[tuple[Size, ...]], Answer]
    frames: Callable[[VideoSize], tuple[int, ...]] | None = None
    known: dict[tuple[Size, ...], list[Footprint]] = field(default_factory=dict)

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What media of these sizes take up in one sample."""
        key = tuple(sizes)
        found = self.known.get(key)
        if found is None:
            try:
                texts, rows = self.ask(key)
            except (ValueError, ZeroDivisionError, RuntimeError) as error:
                raise SkipSample(
                    Reason.IMPOSSIBLE_SHAPE, found=f"{self.kind} of {key} that the processor refuses ({error})"
                ) from error
            found = [self._footprint(size, text, count) for size, text, count in zip(key, texts, rows, strict=True)]
            if len(self.known) >= KEPT:
                self.known.clear()
            self.known[key] = found
        return found

    def _footprint(self, size: Size, text: str, rows: int) -> Footprint:
        tokenised, runs = compress(text, self.pad)
        frames = self.frames(size) if self.frames is not None and isinstance(size, VideoSize) else ()
        return Footprint(kind=self.kind, runs=runs, rows=rows, text=tokenised, frames=frames)


def compress(text: str, pad: str) -> tuple[str, tuple[int, ...]]:
    """The text with every run of pads written once, and how long each run was.

    >>> compress("<img>ppp</img>pp", "p")
    ('<img>p</img>p', (3, 2))
    """
    runs: list[int] = []

    def once(match: re.Match[str]) -> str:
        runs.append(len(match.group()) // len(pad))
        return pad

    return re.sub(f"(?:{re.escape(pad)})+", once, text), tuple(runs)


def image_probe(processor: Any, *, pad: str, rows: Rows) -> Probe:
    """A probe for pictures, through the processor's own function."""
    options, process = processor_options(processor)["images_kwargs"], image_processing(processor)

    def ask(sizes: tuple[Size, ...]) -> Answer:
        from PIL import Image

        blanks = [Image.new("RGB", (size.width, size.height)) for size in sizes if isinstance(size, ImageSize)]
        made, texts = process([blanks], **options)
        return texts, [int(count) for count in rows(made)]

    return Probe(kind="image", pad=pad, ask=ask)


def image_count(processor: Any, *, pad: str, frame: str = "{}", beside: int = 0) -> Probe:
    """A probe for pictures that needs no blank ones, for processors that count tokens and patches from sizes alone.

    `frame` is what stands around the pads; `beside`, how many tokens of it are in the processor's count.
    """
    count = token_counting(processor)

    def ask(sizes: tuple[Size, ...]) -> Answer:
        shapes = [(size.height, size.width) for size in sizes if isinstance(size, ImageSize)]
        counted = count(image_sizes=shapes)
        texts = [frame.format(pad * (tokens - beside)) for tokens in counted["num_image_tokens"]]
        return texts, list(counted["num_image_patches"])

    return Probe(kind="image", pad=pad, ask=ask)


Facts = Callable[[Any, Mapping[str, Any], Sequence[ImageSize]], tuple[Mapping[str, Any], Sequence[int]]]
"""(image processor, its options, sizes) → what the processor's own text is written from, and each picture's rows."""


def image_facts(processor: Any, *, pad: str, facts: Facts) -> Probe:
    """A probe for pictures that needs no blank ones: what they are cut into is reckoned, and the processor writes
    its own text from that.
    """
    options = processor_options(processor)["images_kwargs"]

    def ask(sizes: tuple[Size, ...]) -> Answer:
        shapes = [size for size in sizes if isinstance(size, ImageSize)]
        made, rows = facts(processor.image_processor, options, shapes)
        return [processor.replace_image_token(made, image_idx=place) for place in range(len(shapes))], list(rows)

    return Probe(kind="image", pad=pad, ask=ask)


def clip_probe(processor: Any, *, pad: str, rows: Rows, count: int | None = None, fps: float | None = None) -> Probe:
    """A probe for clips, through the processor's own function.

    Frames are chosen by the processor's own rule, for the number or rate it is set to; where it is set to neither, for
    `count` or `fps`. A clip with fewer frames gives all of them; with `count`, some twice, so that all clips are alike.
    """
    options, process = processor_options(processor)["videos_kwargs"], video_processing(processor)

    def frames(size: VideoSize) -> tuple[int, ...]:
        return _chosen(processor.video_processor, size, count, fps)

    def ask(sizes: tuple[Size, ...]) -> Answer:
        import torch

        texts: list[str] = []
        counts: list[int] = []
        for size in sizes:
            assert isinstance(size, VideoSize)
            chosen = frames(size)
            blank = torch.zeros(len(chosen), 3, size.height, size.width, dtype=torch.uint8)
            own = {**options, "video_metadata": [metadata(size, chosen)], "do_sample_frames": False}
            made, written = process([blank], **{**own, "return_metadata": True})
            texts += written
            counts += [int(count) for count in rows(made)]
        return texts, counts

    return Probe(kind="video", pad=pad, ask=ask, frames=frames)


def _chosen(numbers: Any, size: VideoSize, count: int | None, fps: float | None) -> tuple[int, ...]:
    refuse_still_clips(size)
    rate = numbers.fps or fps
    asked = numbers.num_frames or count or (size.frames if rate is None else size.frames / size.fps * rate)
    wanted = max(1, int(asked))
    if wanted < size.frames:
        found = numbers.sample_frames(metadata(size, ()), num_frames=wanted)
        return tuple(int(index) for index in found if index < size.frames)
    fixed = count is not None and numbers.num_frames is None
    return tuple(np.linspace(0, size.frames - 1, wanted if fixed else size.frames).round().astype(int).tolist())


def metadata(size: VideoSize, frames: Sequence[int]) -> Any:
    """What transformers wants to know of a clip; `frames` are those already chosen."""
    from transformers.video_utils import VideoMetadata

    return VideoMetadata(
        total_num_frames=size.frames,
        fps=size.fps,
        height=size.height,
        width=size.width,
        duration=size.frames / size.fps,
        frames_indices=list(frames) or None,
    )
