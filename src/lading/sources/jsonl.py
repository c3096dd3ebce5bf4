"""A memory-mapped JSONL file: an index of where lines begin, and rows parsed only when they are asked for."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import CorpusError
from lading.sources.fingerprint import file_fingerprint
from lading.sources.lines import NEWLINE, scan_lines
from lading.sources.mapped import Mapped, MappedRows
from lading.sources.parsing import parse_row


class JsonlFile:
    """Rows of a JSONL file, by number. Blank lines are not rows; line numbers count them all the same.

    Nothing is parsed up front. Where lines begin is found once and kept (`cache`; see `lading.sources.index`), so that
    a file is opened again at once, however large it is. Pickling carries the path alone: workers map file and index
    for themselves.
    """

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        self.path = path
        self.cache = cache
        if not path.is_file():
            raise CorpusError(found=f"no file {path}", wanted="a JSONL file", consequence="nothing was read")

    def __len__(self) -> int:
        return len(self._rows)

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "cache": self.cache}

    def where(self, number: int) -> str:
        """`file:line` of a row, counted from 1."""
        return f"{self.path}:{self._rows.piece(number) + 1}"

    def read(self, number: int) -> Mapping[str, Any]:
        """Parse one row."""
        text = self._rows.text(number)
        return parse_row(text.rstrip(b"\r\n"), file=str(self.path), line=self._rows.piece(number) + 1)

    def fingerprint(self, *, timed: bool = True) -> str:
        """What tells one state of the file from another."""
        return file_fingerprint(self.path, timed=timed)

    @cached_property
    def _rows(self) -> MappedRows:
        return MappedRows(self.path, kind="lines", scan=scan_lines, whole=_is_line, cache=self.cache)


def _is_line(text: Mapped, start: int, stop: int) -> bool:
    begins = start == 0 or text[start - 1] == NEWLINE
    return begins and (stop == len(text) or text[stop - 1] == NEWLINE)
