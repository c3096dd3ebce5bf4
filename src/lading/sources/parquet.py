"""Rows of a Parquet file, by number. A row group is read when one of its rows is asked for; the last few are kept.

Parquet is read a row group at a time, whatever is wanted of it: a file of small groups (a hundred rows with pictures, a
few thousand without) is read by number quickly and with little memory. Media stay as they are stored: bytes, a path, or
`{"bytes": …, "path": …}`.
"""

from __future__ import annotations

import bisect
import importlib
import logging
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import CorpusError, MissingDependency, Reason, SkipSample
from lading.sources.files import DataFile

logger = logging.getLogger(__name__)

KEPT = 128 << 20
"""Bytes of row groups that are kept, of all but the last one."""
LARGE = 256 << 20
"""Bytes of a row group that are worth a warning."""


class ParquetFile(DataFile):
    """Rows of a Parquet file. Nothing is kept on disk: the file has an index of its own."""

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        super().__init__(path, cache=cache)
        if not path.is_file():
            raise CorpusError(found=f"no file {path}", wanted="a Parquet file", consequence="nothing was read")
        largest = max(map(self._size_of, range(len(self._ends))), default=0)
        if largest > LARGE:
            logger.warning(
                "%s has row groups of up to %d MB; each process holds one, and reads it for a row: write smaller ones",
                path,
                largest >> 20,
            )

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def where(self, number: int) -> str:
        return f"{self.path} row {number}"

    def read(self, number: int) -> Mapping[str, Any]:
        """One row; `SkipSample` where its row group cannot be read."""
        group = bisect.bisect_right(self._ends, number)
        first = self._ends[group - 1] if group else 0
        try:
            row = self._group(group).slice(number - first, 1).to_pylist()
        except (self._arrow.ArrowException, OSError, UnicodeDecodeError) as error:
            raise SkipSample(
                Reason.BAD_ROW,
                found=f"a row group that cannot be read ({_brief(error)})",
                wanted="Parquet",
                where=self.where(number),
            ) from error
        value: Mapping[str, Any] = row[0]
        return value

    def _group(self, number: int) -> Any:
        groups = self._groups
        table = groups.pop(number, None)
        if table is None:
            # Room is made before: memory holds what is kept and one more, never two.
            while groups and sum(held.nbytes for held in groups.values()) + self._size_of(number) > KEPT:
                groups.pop(next(iter(groups)))
            # One thread: this is a worker among several, and threads do not survive a fork.
            table = self._file.read_row_group(number, use_threads=False)
        groups[number] = table
        return table

    def _size_of(self, group: int) -> int:
        return int(self._file.metadata.row_group(group).total_byte_size)

    @cached_property
    def _groups(self) -> dict[int, Any]:
        """The row groups in memory, the one used last at the end."""
        return {}

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        """One past the last row of each row group."""
        metadata = self._file.metadata
        return tuple(accumulate(metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)))

    @cached_property
    def _file(self) -> Any:
        parquet = _library("pyarrow.parquet")
        try:
            return parquet.ParquetFile(self.path, pre_buffer=False)
        except (self._arrow.ArrowException, OSError) as error:
            raise CorpusError(
                found=f"a file that is no Parquet ({_brief(error)})",
                wanted="a Parquet file",
                consequence="nothing was read",
                where=str(self.path),
            ) from error

    @property
    def _arrow(self) -> Any:
        return _library("pyarrow")


def _brief(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependency(package="pyarrow", purpose="reading Parquet files") from error
