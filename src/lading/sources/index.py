"""The texts of a file's rows by number: where rows begin is found once, kept, and memory-mapped from then on.

    mark      16 bytes: a digest of the file's size, time of change and a few blocks, and of how it was scanned
    counts    how many starts and how many gaps follow
    starts    where each piece (a line, an element) begins; one more at the end
    gaps      for each piece that is no row (a blank line): how many rows stand before it

All of it in little-endian numbers of 64 bits, so that opening a file again maps it and looks at a few pages. An index
that does not agree with its file, or with itself, is made again. Where none can be written, it stays in memory.
"""

from __future__ import annotations

import hashlib
import io
import logging
import mmap
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from lading.cache import BESIDE, Cache, cache_folders, replacing
from lading.errors import CorpusError
from lading.progress import task

logger = logging.getLogger(__name__)

KEPT_FROM = 4 << 20
"""Bytes from which on a file's index is kept; a smaller file is scanned sooner than an index is checked."""
SAMPLED = 16
"""Rows of a kept index that are looked at when it is opened."""
FORMAT = 1
BLOCKS, BLOCK = 16, 512
_WORD = np.dtype("<i8")
_HEADER = 4
"""Numbers in front: the mark (2), and the two counts."""

Positions = NDArray[np.int64]
BytesFile = io.FileIO | io.BytesIO
Scan = Callable[[BytesFile, int], Iterator[tuple[Positions, Positions]]]
"""An open file and its size → its starts and gaps, part by part. Every part may have a buffer of its own, no more."""
Mapped = mmap.mmap | bytes
Whole = Callable[[Mapped, int, int], bool]
"""Whether a span of a file looks like one row, by what stands around its edges."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RowIndex:
    """Where rows are. Law: `span(row)` needs no other row, and reads none of the file."""

    starts: Positions
    gaps: Positions

    def __len__(self) -> int:
        return len(self.starts) - 1 - len(self.gaps)

    def piece(self, row: int) -> int:
        """The number of a row's line or element among all there are, blank lines counted.

        >>> lines = RowIndex(starts=np.array([0, 8, 9, 10, 18]), gaps=np.array([1, 1]))  # lines 1 and 2 are blank
        >>> len(lines), [lines.piece(row) for row in range(2)], lines.span(1)
        (2, [0, 3], (10, 18))
        """
        return row + int(np.searchsorted(self.gaps, row, side="right")) if len(self.gaps) else row

    def span(self, row: int) -> tuple[int, int]:
        """Where a row begins, and where the next piece does."""
        piece = self.piece(row)
        return int(self.starts[piece]), int(self.starts[piece + 1])


def open_index(path: Path, *, kind: str, scan: Scan, cache: Cache = True, again: bool = False) -> RowIndex:
    """The index of a file: the kept one if it is right, else a new one. `kind` names the scan; `again` scans anyway."""
    with path.open("rb", buffering=0) as file:
        state = os.fstat(file.fileno())
        mark, places = bytes(16), []
        if cache and state.st_size >= KEPT_FROM:
            mark = _mark(file, state, kind)
            places = [_place(path, folder) for folder in (cache_folders(path) if cache is True else [Path(str(cache))])]
        for place in () if again else places:
            if (kept := _read(place, mark, state.st_size)) is not None:
                return kept
        for place in places[-1:]:
            try:
                with replacing(place) as out:
                    _write(out, mark, scan(file, state.st_size), path, state.st_size)
            except OSError as error:
                logger.warning("where the rows of %s begin is not kept: %s", path, error)
            else:
                if (kept := _read(place, mark, state.st_size)) is not None:
                    return kept
        file.seek(0)
        memory = io.BytesIO()
        _write(memory, mark, scan(file, state.st_size), path, state.st_size)
        index = _index(np.frombuffer(memory.getbuffer(), dtype=_WORD))
        assert index is not None, f"a scan of {kind} that gave no starts"
        return index


def _place(path: Path, folder: Path) -> Path:
    # Beside its file an index moves with it; elsewhere, files of one name must not meet.
    beside = folder == path.absolute().parent / BESIDE
    name = hashlib.blake2b(os.fsencode(path.name if beside else path.absolute()), digest_size=6).hexdigest()
    return folder / f"{path.name}-{name}.rows"


def _mark(file: BytesFile, state: os.stat_result, kind: str) -> bytes:
    """What must be the same for an index to be right. Time and size may be, by chance or by copying; so blocks of the
    content are looked at too, among them the first and the last.
    """
    mark = hashlib.blake2b(f"{FORMAT} {kind} {state.st_size} {state.st_mtime_ns}".encode(), digest_size=16)
    for number in range(BLOCKS):
        file.seek(max(0, state.st_size - BLOCK) * number // (BLOCKS - 1))
        mark.update(file.read(BLOCK))
    file.seek(0)
    return mark.digest()


def _read(place: Path, mark: bytes, size: int) -> RowIndex | None:
    try:
        # A plain view: indexing a `memmap` itself takes ten times as long.
        words = np.memmap(place, dtype=_WORD, mode="r").view(np.ndarray)
    except (OSError, ValueError):
        return None
    if len(words) <= _HEADER or words[:2].tobytes() != mark:
        return None
    index = _index(words)
    sound = index is not None and 0 <= index.starts[0] <= index.starts[-1] <= size
    return index if sound else None


def _index(words: NDArray[np.int64]) -> RowIndex | None:
    starts, gaps = int(words[2]), int(words[3])
    if starts < 1 or gaps < 0 or gaps >= starts or len(words) != _HEADER + starts + gaps:
        return None
    return RowIndex(starts=words[_HEADER : _HEADER + starts], gaps=words[_HEADER + starts :])


def _write(out: BinaryIO, mark: bytes, parts: Iterator[tuple[Positions, Positions]], path: Path, size: int) -> None:
    # The counts are known at the end, and the starts of a large file are never in memory together.
    out.write(bytes(_HEADER * _WORD.itemsize))
    starts, gaps, far = 0, [np.zeros(0, dtype=_WORD)], 0
    with task(f"finding the rows of {path.name}", size, "bytes") as advance:
        for begun, blank in parts:
            out.write(begun.astype(_WORD, copy=False).tobytes())
            starts += len(begun)
            gaps.append(blank)
            if len(begun):
                advance(int(begun[-1]) - far)
                far = int(begun[-1])
    late = np.concatenate(gaps).astype(_WORD)
    out.write(late.tobytes())
    out.seek(0)
    out.write(mark + np.array([starts, len(late)], dtype=_WORD).tobytes())


class MappedRows:
    """The texts of the rows of one file.

    An index is trusted as far as it is checked: some rows when it is opened, and each when it is asked for.
    """

    def __init__(self, path: Path, *, kind: str, scan: Scan, whole: Whole, cache: Cache = True) -> None:
        self.path = path
        self._looks_whole = whole
        self._open = partial(open_index, path, kind=kind, scan=scan, cache=cache)
        self.index = self._open()
        rows = np.linspace(0, len(self.index) - 1, SAMPLED, dtype=np.int64).tolist() if len(self.index) else ()
        if not all(self._agrees(*self.index.span(row)) for row in rows):
            self.index = self._open(again=True)

    def text(self, row: int) -> bytes:
        """What is written from a row's beginning to the next one's."""
        start, stop = self.index.span(row)
        if not self._agrees(start, stop):
            self._find_again()
            start, stop = self.index.span(row)
        return self._bytes[start:stop]

    def _agrees(self, start: int, stop: int) -> bool:
        """Whether a row still stands where the index says."""
        text = self._bytes
        if not isinstance(text, bytes) and text.size() < len(text):
            return False  # the file was cut since it was mapped: the kernel ends whoever touches what is gone
        return 0 <= start < stop <= len(text) and self._looks_whole(text, start, stop)

    def _find_again(self) -> None:
        """A row is not where the index says: the index was damaged, or the file is another one by now."""
        del self._bytes  # it is mapped anew
        logger.warning("the index of %s is wrong; it is made again", self.path)
        index = self._open(again=True)
        if len(index) != len(self.index):
            raise CorpusError(
                found=f"{len(index)} rows where {len(self.index)} were",
                wanted="a file that does not change while it is read",
                consequence="samples would be taken for others",
                where=str(self.path),
            )
        self.index = index

    @cached_property
    def _bytes(self) -> Mapped:
        if self.path.stat().st_size == 0:
            return b""
        with self.path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
