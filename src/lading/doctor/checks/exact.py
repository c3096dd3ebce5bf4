"""What only a processor knows: tokens, labels, lengths, and what becomes of a picture's shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lading.doctor.checks.media import Verdict
from lading.doctor.kinds import Problem
from lading.doctor.reading import kind_of
from lading.errors import SkipSample
from lading.loader import ProcessorFacts, Samples
from lading.media.opening import name_of
from lading.records import Dropped, ImageSize, MediaPart

SLIM = 4
"""Shapes up to so many times as long as wide are not bent by any resize."""
BENT = 2.0


def special_tokens(facts: ProcessorFacts) -> tuple[str, ...]:
    """What the tokenizer takes for a marker wherever it stands."""
    tokenizer: Any = facts.processor.tokenizer
    added = tokenizer.added_tokens_decoder.values()
    return tuple(dict.fromkeys(token.content for token in added if token.special))


def lengths(samples: Samples, indices: Sequence[int], pack_size: int | None) -> Iterator[tuple[int, Problem]]:
    """Samples that the loader would refuse for what the processor makes of them."""
    for index, length in zip(indices, samples.measure(indices), strict=True):
        if isinstance(length, Dropped):
            yield index, Problem(kind_of(length.reason), _without_place(length))
        elif pack_size is not None and length.tokens > pack_size:
            yield index, Problem("too_long", f"{length.tokens:,} tokens where a pack holds {pack_size:,}")


def bent(part: MediaPart, verdict: Verdict, facts: ProcessorFacts) -> Iterator[Problem]:
    """A picture that the resize makes much wider or higher than it is."""
    size = verdict.size
    if not isinstance(size, ImageSize) or "image" not in facts.geometries:
        return
    short, long = sorted((size.height, size.width))
    if short < 1 or long <= SLIM * short:
        return
    try:
        _, height, width = facts.geometries["image"].footprints([size])[0].grid
    except SkipSample:
        # The whole sample is refused for it, by name, when it is counted.
        return
    change = (width / height) / (size.width / size.height)
    if height * width > 1 and max(change, 1 / change) >= BENT:
        detail = f"{name_of(part)} of {size.width}×{size.height} pixels becomes {width}×{height} patches"
        yield Problem("distorted_picture", detail)


def _without_place(dropped: Dropped) -> str:
    return dropped.detail.removesuffix(f" [{dropped.key.where}]").removeprefix("found ")
