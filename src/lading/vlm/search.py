"""Labels for ids that somebody else tokenised: by lining them up with our own tokens, by markers, or by text.

The ways in order of trust. Each is a look-up in arrays; none walks over tokens in Python.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lading.encode.expand import are_pads

Ids = NDArray[np.int64]
Span = tuple[int, int]

NARROWING = 16
"""Tokens of a pattern that are compared for all places at once; the few places that are left are compared whole."""


def find_pattern(ids: Ids, pattern: Sequence[int], start: int = 0) -> Ids:
    """Where `pattern` begins in `ids`, from `start` on.

    >>> find_pattern(np.array([1, 2, 3, 1, 2]), [1, 2]).tolist()
    [0, 3]
    """
    wanted = np.asarray(pattern, dtype=np.int64)
    places = len(ids) - len(wanted) + 1
    if not len(wanted) or places <= start:
        return np.zeros(0, dtype=np.int64)
    found = np.flatnonzero(ids[start:places] == wanted[0]) + start
    for ahead, token in enumerate(wanted[1:NARROWING].tolist(), start=1):
        found = found[ids[found + ahead] == token]
    if len(wanted) > NARROWING:
        whole = [np.array_equal(ids[place : place + len(wanted)], wanted) for place in found.tolist()]
        found = found[np.array(whole, dtype=np.bool_)]
    return found


def line_up(ids: Ids, own: Ids, pads: Sequence[int]) -> Ids | None:
    """For each of our own tokens, where it begins in `ids`; `None` where the two do not say the same.

    In `ids` a medium's pad may stand many times where ours stands once, padding may surround the text on either side,
    and the end may be cut off (places behind it are the length of `ids`).

    >>> line_up(np.array([0, 0, 5, 9, 9, 9, 6]), np.array([5, 9, 6]), pads=[9]).tolist()
    [2, 3, 6, 7]
    """
    repeats = are_pads(ids, pads) & (ids == np.concatenate([[-1], ids[:-1]]))
    begins = np.flatnonzero(~repeats)
    folded = ids[begins]
    found = find_pattern(folded, own.tolist())
    if len(found):
        first = int(found[-1])
        return np.append(begins, len(ids))[first : first + len(own) + 1]
    return _cut_off(folded, begins, own, len(ids))


def _cut_off(folded: Ids, begins: Ids, own: Ids, length: int) -> Ids | None:
    """The same where the text was truncated: the ids end with a beginning of ours."""
    for first in find_pattern(folded, own[:1].tolist()).tolist():
        rest = folded[first:]
        if 1 < len(rest) < len(own) and np.array_equal(rest, own[: len(rest)]):
            places = np.full(len(own) + 1, length, dtype=np.int64)
            places[: len(rest)] = begins[first:]
            return places
    return None


def marker_spans(ids: Ids, opening: Sequence[int], closing: Sequence[int]) -> list[Span]:
    """What stands between each opening and the next closing, the closing included.

    >>> marker_spans(np.array([7, 8, 1, 2, 9, 7, 8, 3]), opening=[7, 8], closing=[9])
    [(2, 5), (7, 8)]
    """
    starts = find_pattern(ids, opening) + len(opening)
    stops = find_pattern(ids, closing) + len(closing)
    spans: list[Span] = []
    for start in starts.tolist():
        after = stops[np.searchsorted(stops, start, side="right") :]
        stop = int(after[0]) if len(after) else len(ids)
        if not spans or start >= spans[-1][1]:
            spans.append((start, stop))
    return spans


def text_spans(ids: Ids, answers: Sequence[Sequence[Sequence[int]]]) -> list[Span | None]:
    """Where each answer stands, each given in the ways it may be tokenised, looked for behind the one before."""
    spans: list[Span | None] = []
    cursor = 0
    for ways in answers:
        found = [(int(hits[0]), len(way)) for way in ways if len(hits := find_pattern(ids, way, cursor))]
        if not found:
            spans.append(None)
            continue
        start, length = min(found)
        spans.append((start, start + length))
        cursor = start + length
    return spans
