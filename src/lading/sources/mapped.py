"""The text of a file's rows by number: the file memory-mapped, with an index of where its rows begin."""

from __future__ import annotations

import logging
import mmap
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from lading.cache import Cache
from lading.errors import CorpusError
from lading.sources.index import RowIndex, Scan, open_index

logger = logging.getLogger(__name__)

SAMPLED = 16
"""Rows of a kept index that are looked at when it is opened."""

Mapped = mmap.mmap | bytes
Whole = Callable[[Mapped, int, int], bool]
"""Whether a span of a file looks like one row, by what stands around its edges."""


class MappedRows:
    """The texts of the rows of one file.

    An index is trusted as far as it is checked: some rows when it is opened, and each when it is asked for.
    """

    def __init__(self, path: Path, *, kind: str, scan: Scan, whole: Whole, cache: Cache = True) -> None:
        self.path = path
        self._kind, self._scan, self._looks_whole, self._cache = kind, scan, whole, cache
        self._index = self._opened()

    def __len__(self) -> int:
        return len(self._index)

    def piece(self, row: int) -> int:
        """The number of a row's line or element, blank lines counted."""
        return self._index.piece(row)

    def text(self, row: int) -> bytes:
        """What is written from a row's beginning to the next one's."""
        start, stop = self._index.span(row)
        if self._is_cut() or not self._whole(start, stop):
            self._index = self._found_again()
            start, stop = self._index.span(row)
        return self._bytes[start:stop]

    def _opened(self) -> RowIndex:
        index = open_index(self.path, kind=self._kind, scan=self._scan, cache=self._cache)
        last = len(index) - 1
        rows = {last * number // (SAMPLED - 1) for number in range(SAMPLED)} if len(index) else ()
        if all(self._whole(*index.span(row)) for row in rows):
            return index
        return open_index(self.path, kind=self._kind, scan=self._scan, cache=self._cache, again=True)

    def _whole(self, start: int, stop: int) -> bool:
        return 0 <= start < stop <= len(self._bytes) and self._looks_whole(self._bytes, start, stop)

    def _is_cut(self) -> bool:
        """Whether the file is shorter than when it was mapped: whoever touches what is gone is ended by the kernel."""
        mapped = self._bytes
        return not isinstance(mapped, bytes) and mapped.size() < len(mapped)

    def _found_again(self) -> RowIndex:
        """A row is not where the index says: the index was damaged, or the file is another one by now."""
        del self._bytes  # it is mapped anew
        logger.warning("the index of %s is wrong; it is made again", self.path)
        index = open_index(self.path, kind=self._kind, scan=self._scan, cache=self._cache, again=True)
        if len(index) != len(self._index):
            raise CorpusError(
                found=f"{len(index)} rows where {len(self._index)} were",
                wanted="a file that does not change while it is read",
                consequence="samples would be taken for others",
                where=str(self.path),
            )
        return index

    @cached_property
    def _bytes(self) -> Mapped:
        if self.path.stat().st_size == 0:
            return b""
        with self.path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
