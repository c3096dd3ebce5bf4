"""A memory-mapped JSONL file: an index of where lines begin, and rows parsed only when they are asked for."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import CorpusError
from lading.sources.parsing import parse_row

CHUNK = 1 << 24
"""Bytes scanned at a time, so that opening a large file needs little memory."""

_NEWLINE = ord("\n")
_BLANK = frozenset(b" \t\r")


class JsonlFile:
    """Rows of a JSONL file, by number. Blank lines are not rows; line numbers count them all the same.

    Nothing is parsed up front, and pickling carries the path alone, so that workers map the file for themselves.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_file():
            raise CorpusError(found=f"no file {path}", wanted="a JSONL file", consequence="nothing was read")

    def __len__(self) -> int:
        return len(self._lines)

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path}

    def where(self, number: int) -> str:
        """`file:line` of a row, counted from 1."""
        return f"{self.path}:{self._lines[number] + 1}"

    def read(self, number: int) -> Mapping[str, Any]:
        """Parse one row."""
        line = int(self._lines[number])
        start, stop = int(self._starts[line]), int(self._starts[line + 1])
        return parse_row(self._bytes[start:stop].rstrip(b"\r\n"), file=str(self.path), line=line + 1)

    @cached_property
    def _bytes(self) -> mmap.mmap | bytes:
        if self.path.stat().st_size == 0:
            return b""
        with self.path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        """Where each line begins; one more entry at the end of the file."""
        size = len(self._bytes)
        pieces = [np.zeros(1, dtype=np.int64)]
        for offset in range(0, size, CHUNK):
            chunk = np.frombuffer(self._bytes[offset : offset + CHUNK], dtype=np.uint8)
            pieces.append(np.flatnonzero(chunk == _NEWLINE) + (offset + 1))
        starts = np.concatenate(pieces)
        return starts if starts[-1] == size else np.append(starts, size)

    @cached_property
    def _lines(self) -> NDArray[np.int64]:
        """Numbers of the lines that hold a row."""
        starts = self._starts[:-1]
        # Only a line that begins with a blank can be blank; looking at those alone keeps Python out of real data.
        firsts = np.frombuffer(self._bytes, dtype=np.uint8)[starts] if len(starts) else np.zeros(0, dtype=np.uint8)
        candidates = np.flatnonzero(np.isin(firsts, [*_BLANK, _NEWLINE]))
        blank = [line for line in candidates.tolist() if self._is_blank(line)]
        return np.delete(np.arange(len(starts)), blank)

    def _is_blank(self, line: int) -> bool:
        text = self._bytes[int(self._starts[line]) : int(self._starts[line + 1])]
        return all(byte in _BLANK or byte == _NEWLINE for byte in text)
