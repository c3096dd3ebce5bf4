"""Duplicate samples of a corpus, and media that are there under two names: found by digests, then compared in full."""

from __future__ import annotations

import filecmp
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.doctor.digests import path_digest
from lading.doctor.kinds import Problem
from lading.doctor.reading import Read, read
from lading.sources import Corpus

Pairs = Iterator[tuple[int, Problem]]


def same_samples(corpus: Corpus, digests: NDArray[np.uint64]) -> Pairs:
    """Every sample that says and shows what an earlier one does."""
    rows = np.flatnonzero(digests)
    for first, again in _repeats(digests[rows]):
        place, earlier = corpus.key(int(rows[again])), corpus.key(int(rows[first]))
        # One file under two names is the same place.
        whose = f" of data set {earlier.source}" if earlier.where == place.where else ""
        yield place.index, Problem("duplicate_sample", f"the same as {earlier.where}{whose}")


def same_media(corpus: Corpus, layouts: Sequence[Layout], media: NDArray[np.void]) -> Pairs:
    """Every file that holds what a file of another name does."""
    media = media[np.lexsort((media["row"], media["path"]))]
    _, firsts = np.unique(media["path"], return_index=True)
    # Of each file the first row that shows it, in the order of these.
    files = media[firsts]
    files = files[np.lexsort((files["path"], files["row"]))]
    for first, again in _repeats(files["content"]):
        one, other = (_path(corpus, layouts, files[place]) for place in (first, again))
        if one is not None and other is not None and filecmp.cmp(one, other, shallow=False):
            where = corpus.key(int(files[first]["row"])).where
            yield int(files[again]["row"]), Problem("duplicate_media", f"{other} holds the same as {one} of {where}")


def _repeats(values: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
    """(first place, later place) of every value that is there again.

    >>> list(_repeats(np.array([7, 5, 7, 7], dtype=np.uint64)))
    [(0, 2), (0, 3)]
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    fresh = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, dtype=bool)
    firsts = np.maximum.accumulate(np.where(fresh, np.arange(len(ordered)), 0))
    places = np.flatnonzero(~fresh)
    for again in places[np.argsort(order[places])]:
        yield int(order[firsts[again]]), int(order[again])


def _path(corpus: Corpus, layouts: Sequence[Layout], entry: np.void) -> str | None:
    """The name behind a digest: its row is read once more."""
    seen = read(corpus, layouts, int(entry["row"]))
    if not isinstance(seen, Read):
        return None
    names = [part.reference for part in seen.conversation.media if isinstance(part.reference, str)]
    return next((name for name in names if path_digest(name) == int(entry["path"])), None)
