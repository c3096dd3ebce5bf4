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

from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import Footprint, ImageSize, Size, VideoSize

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
        if key not in self.known:
            self.known[key] = self._asked(key)
        return self.known[key]

    def _asked(self, sizes: tuple[Size, ...]) -> list[Footprint]:
        try:
            texts, rows = self.ask(sizes)
        except (ValueError, ZeroDivisionError) as error:
            raise SkipSample(
                Reason.IMPOSSIBLE_SHAPE, found=f"{self.kind} of {sizes} that the processor refuses ({error})"
            ) from error
        return [self._footprint(size, text, count) for size, text, count in zip(sizes, texts, rows, strict=True)]

    def _footprint(self, size: Size, text: str, rows: int) -> Footprint:
        outline, runs = compress(text, self.pad)
        frames = self.frames(size) if self.frames is not None and isinstance(size, VideoSize) else ()
        return Footprint(kind=self.kind, runs=runs, rows=rows, text=outline, frames=frames)


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
    """A probe for pictures, through the processor's own `_process_images`."""
    options = _options(processor)["images_kwargs"]

    def ask(sizes: tuple[Size, ...]) -> Answer:
        from PIL import Image

        blanks = [Image.new("RGB", (size.width, size.height)) for size in sizes if isinstance(size, ImageSize)]
        made, texts = processor._process_images([blanks], **options)
        return texts, [int(count) for count in rows(made)]

    return Probe(kind="image", pad=pad, ask=ask)


def _options(processor: Any) -> Any:
    return processor._merge_kwargs(
        processor.valid_processor_kwargs, tokenizer_init_kwargs=processor.tokenizer.init_kwargs
    )
