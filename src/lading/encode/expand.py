"""Marks become media: first their text, then, in token ids, as many pads as the medium has features.

Repeating pads in ids rather than in text keeps the text short: a picture of 16,000 tokens costs one token to tokenise.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lading.errors import Reason, SkipSample
from lading.family import Medium
from lading.fields import IGNORE_INDEX, MediaKind
from lading.records import Footprint, MediumSpan


@dataclass(frozen=True, kw_only=True, slots=True)
class Spliced:
    """A text in which marks were replaced, and how far each later character moved."""

    text: str
    footprints: tuple[Footprint, ...]
    """The media in the order of their marks: a template may show pictures before clips, whatever the author wrote."""
    boundaries: tuple[int, ...]
    """Where each mark ended in the old text."""
    moved: tuple[int, ...]
    """How far characters behind that boundary moved."""

    def place(self, character: int) -> int:
        """Where a character of the old text stands now. Characters inside a mark are never asked for."""
        before = bisect.bisect_right(self.boundaries, character)
        return character + (self.moved[before - 1] if before else 0)


def splice(text: str, media: Mapping[MediaKind, Medium], footprints: Sequence[Footprint], *, where: str) -> Spliced:
    """Replace each mark by its medium's text; the first mark of a kind is the first medium of that kind, and so on."""
    kinds = {medium.mark: kind for kind, medium in media.items()}
    found = list(_marks(tuple(kinds)).finditer(text))
    if not found and not footprints:
        return Spliced(text=text, footprints=(), boundaries=(), moved=())
    marked = [kinds[match.group()] for match in found]
    _refuse_quoted_marks(marked, footprints, media, where)
    waiting = {kind: iter([item for item in footprints if item.kind == kind]) for kind in media}
    ordered = tuple(next(waiting[kind]) for kind in marked)
    pieces: list[str] = []
    boundaries: list[int] = []
    moved: list[int] = []
    last = offset = 0
    for match, footprint in zip(found, ordered, strict=True):
        replacement = media[footprint.kind].text(footprint)
        pieces += [text[last : match.start()], replacement]
        last = match.end()
        offset += len(replacement) - len(match.group())
        boundaries.append(last)
        moved.append(offset)
    spliced = "".join([*pieces, text[last:]])
    return Spliced(text=spliced, footprints=ordered, boundaries=tuple(boundaries), moved=tuple(moved))


@cache
def _marks(marks: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(re.escape(mark) for mark in sorted(marks, key=len, reverse=True)) or r"(?!)")


def _refuse_quoted_marks(
    marked: list[MediaKind], footprints: Sequence[Footprint], media: Mapping[MediaKind, Medium], where: str
) -> None:
    if sorted(marked) == sorted(footprint.kind for footprint in footprints):
        return
    names = ", ".join(medium.mark for medium in media.values())
    raise SkipSample(
        Reason.PLACEHOLDER_IN_TEXT,
        found=f"{len(marked)} media marks in the rendered text for {len(footprints)} media",
        wanted=f"one each; a message probably contains one of {names} as text",
        where=where,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Expanded:
    """Token ids with every pad repeated. `starts[i]` is where the i-th unexpanded token begins now."""

    ids: NDArray[np.int64]
    starts: NDArray[np.int64]
    media: tuple[MediumSpan, ...]


def repeat_pads(
    ids: NDArray[np.int64], pads: Iterable[int], footprints: Sequence[Footprint], *, where: str
) -> Expanded:
    """Repeat the pads of every medium as often as its footprint says.

    >>> picture = Footprint(kind="image", runs=(3,), rows=12, grid=(1, 2, 6))
    >>> repeat_pads(np.array([1, 9, 2]), [9], [picture], where="").ids.tolist()
    [1, 9, 9, 9, 2]
    """
    places = np.flatnonzero(are_pads(ids, pads))
    runs = runs_of(footprints, len(places), where=where)
    repeats = np.ones(len(ids), dtype=np.int64)
    repeats[places] = runs
    starts = np.concatenate([[0], np.cumsum(repeats)])
    return Expanded(ids=np.repeat(ids, repeats), starts=starts, media=_locate(starts, places, footprints))


def runs_of(footprints: Sequence[Footprint], pads: int, *, where: str) -> list[int]:
    """How often each of the pads in a text is repeated; refused where the text has more of them, or fewer."""
    runs = [run for footprint in footprints for run in footprint.runs]
    if pads != len(runs):
        raise SkipSample(
            Reason.PLACEHOLDER_IN_TEXT,
            found=f"{pads} pad tokens",
            wanted=f"{len(runs)}, one for each run of {len(footprints)} media; a message probably contains one as text",
            where=where,
        )
    return runs


def are_pads(ids: NDArray[np.int64], pads: Iterable[int]) -> NDArray[np.bool_]:
    """Which of the ids are pads. A family has two or three; for so few, numpy's `isin` takes ten times as long.

    >>> are_pads(np.array([1, 9, 2]), [9, 8]).tolist()
    [False, True, False]
    """
    found = np.zeros(len(ids), dtype=np.bool_)
    for pad in pads:
        found |= ids == pad
    return found


def _locate(
    starts: NDArray[np.int64], places: NDArray[np.int64], footprints: Sequence[Footprint]
) -> tuple[MediumSpan, ...]:
    begins, ends = starts[places].tolist(), starts[places + 1].tolist()
    spans: list[MediumSpan] = []
    first = 0
    for footprint in footprints:
        last = first + len(footprint.runs)
        spans.append(
            MediumSpan(footprint=footprint, runs=tuple(zip(begins[first:last], ends[first:last], strict=True)))
        )
        first = last
    return tuple(spans)


def labels_from_spans(ids: NDArray[np.int64], spans: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """The ids inside the spans, -100 elsewhere.

    >>> labels_from_spans(np.array([5, 6, 7]), [(1, 2)]).tolist()
    [-100, 6, -100]
    """
    labels = np.full_like(ids, IGNORE_INDEX)
    for start, stop in spans:
        labels[start:stop] = ids[start:stop]
    return labels
