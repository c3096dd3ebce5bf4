"""A memory-mapped JSONL file: an index of where lines begin, and rows parsed only when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import CorpusError, Reason, SkipSample
from lading.sources.files import file_fingerprint
from lading.sources.index import Mapped, MappedRows
from lading.sources.lines import NEWLINE, scan_lines

SHOWN = 40
"""Characters of the offending text on each side."""
READABLE = "numbers of a few thousand digits at most"
_ARRAY = "; an array of many belongs into a file whose name ends in .json"


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


def parse_row(text: bytes, *, file: str, line: int) -> Mapping[str, Any]:
    """One row from its bytes; `SkipSample` when it is not a JSON object.

    >>> parse_row(b'{"a": 1', file="d.jsonl", line=7)
    Traceback (most recent call last):
        ...
    lading.errors.SkipSample: found malformed JSON (Expecting ',' delimiter) near '{"a": 1'; … [d.jsonl:7:8]
    """
    try:
        value = json.loads(text)
    except UnicodeDecodeError as error:
        raise SkipSample(
            Reason.MALFORMED_JSON,
            found=f"a byte that is not UTF-8 near {text[max(0, error.start - SHOWN) : error.start + SHOWN]!r}",
            wanted="one JSON object in UTF-8",
            where=f"{file}:{line}:{error.start + 1}",
        ) from error
    except json.JSONDecodeError as error:
        raise SkipSample(
            Reason.MALFORMED_JSON,
            found=f"malformed JSON ({error.msg}) near {excerpt(error.doc, error.pos)}",
            wanted="one JSON object" + (_ARRAY if text.lstrip().startswith(b"[") else ""),
            where=f"{file}:{line}:{error.colno}",
        ) from error
    except RecursionError as error:
        raise SkipSample(
            Reason.MALFORMED_JSON, found="JSON nested too deeply", wanted="one JSON object", where=f"{file}:{line}"
        ) from error
    except ValueError as error:
        # It is JSON, but Python makes nothing of it: a number of more digits than it reads.
        raise SkipSample(
            Reason.BAD_ROW, found=f"a value that is not read ({error})", wanted=READABLE, where=f"{file}:{line}"
        ) from error
    if not isinstance(value, dict):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a JSON {type(value).__name__}", wanted="one JSON object", where=f"{file}:{line}"
        )
    return value


def excerpt(document: str, position: int) -> str:
    """The text around a position, shortened on both sides."""
    start, stop = max(0, position - SHOWN), min(len(document), position + SHOWN)
    return repr(("…" if start else "") + document[start:stop] + ("…" if stop < len(document) else ""))
