"""Duplicate samples of a corpus, and media that are there under two names: found by digests, then compared in full.

A digest is eight bytes for a sample or a medium: enough to notice two that are alike, and small for a large corpus.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.conversation.keys import kind_of
from lading.doctor.kinds import Problem
from lading.doctor.reading import Read, read
from lading.records import Conversation, TextPart
from lading.sources import Corpus

EDGE = 4096
"""Bytes at each end of a medium that the digest is made of. Two that agree there are compared in full."""
SHOWN_FILES = np.dtype([("path", np.uint64), ("content", np.uint64), ("row", np.int64)])
"""A medium in a file: digests of its name and of what is in it, and the row that shows it."""
Pairs = Iterator[tuple[int, Problem]]


def digest(*pieces: bytes) -> int:
    """A number for these bytes, never 0."""
    made = blake2b(digest_size=8)
    for piece in pieces:
        made.update(len(piece).to_bytes(8))
        made.update(piece)
    return int.from_bytes(made.digest()) or 1


def sample_digest(conversation: Conversation) -> int:
    """Of what a conversation says and shows, whatever else stands in its row."""
    pieces: list[bytes] = []
    for message in conversation.messages:
        pieces.append(message.role.encode())
        if message.weight != 1 or message.thought or message.calls:
            pieces.append(f"\0{message.weight}{message.thought}{message.calls}".encode("utf-8", "surrogatepass"))
        for part in message.parts:
            content = part.text if isinstance(part, TextPart) else f"\0{part.kind}{_name(part.reference)}{part.options}"
            pieces.append(content.encode("utf-8", "surrogatepass"))
    pieces += [key.encode("utf-8", "surrogatepass") for key in conversation.unread if kind_of(key) == "how_to_train"]
    return digest(*pieces)


def path_digest(path: str) -> int:
    """Of a path, however it is spelled."""
    return digest(os.path.normpath(path).encode("utf-8", "surrogateescape"))


def content_digest(file: BinaryIO, size: int) -> int:
    """Of a file's size and both of its ends."""
    file.seek(0)
    head = file.read(EDGE)
    file.seek(max(0, size - EDGE))
    return digest(size.to_bytes(8), head, file.read(EDGE))


def _name(reference: object) -> str:
    if isinstance(reference, bytes):
        return blake2b(reference, digest_size=16).hexdigest()
    return os.path.normpath(reference) if isinstance(reference, str) else repr(reference)


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
