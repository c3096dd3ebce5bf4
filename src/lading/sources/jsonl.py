"""A memory-mapped JSONL file: an index of where lines begin, and rows parsed only when they are asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.cache import Cache
from lading.errors import CorpusError, Reason, SkipSample
from lading.sources.files import DataFile, refuse_other_json
from lading.sources.index import BytesFile, Mapped, MappedRows, Positions

SHOWN = 40
"""Characters of the offending text on each side."""
READABLE = "numbers of a few thousand digits at most"
_ARRAY = "; an array of many belongs into a file whose name ends in .json"
CHUNK = 1 << 20
"""Bytes looked at together: they stay in the processor's cache, and memory does not grow with the file."""
LOOK_AHEAD = 64

NEWLINE = ord("\n")
BLANKS = b" \t\r"
_SUSPECT = np.zeros(256, dtype=bool)
_SUSPECT[[*BLANKS, NEWLINE]] = True


class JsonlFile(DataFile):
    """Rows of a JSONL file, by number. Blank lines are not rows; line numbers count them all the same.

    Nothing is parsed up front. Where lines begin is found once and kept (`cache`; see `lading.sources.index`), so that
    a file is opened again at once, however large it is.
    """

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        super().__init__(path, cache=cache)
        if not path.is_file():
            raise CorpusError(found=f"no file {path}", wanted="a JSONL file", consequence="nothing was read")

    def __len__(self) -> int:
        return len(self._rows.index)

    def where(self, number: int) -> str:
        """`file:line` of a row, counted from 1."""
        return f"{self.path}:{self._rows.index.piece(number) + 1}"

    def read(self, number: int) -> Mapping[str, Any]:
        """Parse one row; `SkipSample` when it is not a JSON object."""
        text = self._rows.text(number).rstrip(b"\r\n")
        try:
            value = json.loads(text)
        except UnicodeDecodeError as error:
            raise SkipSample(
                Reason.MALFORMED_JSON,
                found=f"a byte that is not UTF-8 near {text[max(0, error.start - SHOWN) : error.start + SHOWN]!r}",
                wanted="one JSON object in UTF-8",
                where=f"{self.where(number)}:{error.start + 1}",
            ) from error
        except json.JSONDecodeError as error:
            raise SkipSample(
                Reason.MALFORMED_JSON,
                found=f"malformed JSON ({error.msg}) near {excerpt(error.doc, error.pos)}",
                wanted="one JSON object" + (_ARRAY if text.lstrip().startswith(b"[") else ""),
                where=f"{self.where(number)}:{error.colno}",
            ) from error
        except RecursionError as error:
            raise SkipSample(
                Reason.MALFORMED_JSON,
                found="JSON nested too deeply",
                wanted="one JSON object",
                where=self.where(number),
            ) from error
        except ValueError as error:
            # It is JSON, but Python makes nothing of it: a number of more digits than it reads.
            raise SkipSample(
                Reason.BAD_ROW, found=f"a value that is not read ({error})", wanted=READABLE, where=self.where(number)
            ) from error
        if not isinstance(value, dict):
            refuse_other_json(value, self.where(number))
        return value

    @cached_property
    def _rows(self) -> MappedRows:
        return MappedRows(self.path, kind="lines", scan=scan_lines, whole=_is_line, cache=self.cache)


def _is_line(text: Mapped, start: int, stop: int) -> bool:
    begins = start == 0 or text[start - 1] == NEWLINE
    return begins and (stop == len(text) or text[stop - 1] == NEWLINE)


def excerpt(document: str, position: int) -> str:
    """The text around a position, shortened on both sides."""
    start, stop = max(0, position - SHOWN), min(len(document), position + SHOWN)
    return repr(("…" if start else "") + document[start:stop] + ("…" if stop < len(document) else ""))


def scan_lines(file: BytesFile, size: int) -> Iterator[tuple[Positions, Positions]]:
    r"""Starts and gaps (see `RowIndex`) of the first `size` bytes of a file, chunk by chunk.

    The file is read, not mapped: a page of a mapped file that was looked at counts as memory in use.

    >>> import io
    >>> text = b'{"a": 1}\n  \n{"a": 2}'
    >>> [(starts.tolist(), gaps.tolist()) for starts, gaps in scan_lines(io.BytesIO(text), len(text))]
    [([0, 9, 12], [1]), ([20], [])]
    """
    buffer, marks = memoryview(bytearray(CHUNK)), np.empty(CHUNK, dtype=bool)
    offset = lines = blanks = 0
    fresh = True
    """Whether a line begins where the chunk does."""
    while count := file.readinto(buffer[: min(CHUNK, size - offset)]):
        chunk = np.frombuffer(buffer[:count], dtype=np.uint8)
        newlines = np.flatnonzero(np.equal(chunk, NEWLINE, out=marks[:count]))
        begun = newlines + 1 if not fresh else np.concatenate([np.zeros(1, dtype=np.int64), newlines + 1])
        fresh = bool(chunk[-1] == NEWLINE)
        begun = begun[:-1] if fresh else begun
        blank = _blank_lines(file, chunk, begun, offset)
        yield begun + offset, blank + (lines - blanks) - np.arange(len(blank))
        offset, lines, blanks = offset + count, lines + len(begun), blanks + len(blank)
    yield np.array([offset], dtype=np.int64), np.zeros(0, dtype=np.int64)


def _blank_lines(file: BytesFile, chunk: NDArray[np.uint8], begun: Positions, offset: int) -> Positions:
    """Which of the lines that begin in a chunk are blank. Only a line that begins with a blank can be; looking at those
    alone keeps Python out of real data.
    """
    suspects = np.flatnonzero(_SUSPECT[chunk[begun]])
    blank = [line for line in suspects.tolist() if _is_blank(file, chunk, int(begun[line]), offset)]
    return np.array(blank, dtype=np.int64)


def _is_blank(file: BytesFile, chunk: NDArray[np.uint8], start: int, offset: int) -> bool:
    text = chunk[start : start + LOOK_AHEAD].tobytes().lstrip(BLANKS)
    if text:
        return text[0] == NEWLINE
    # Blank as far as it was looked at.
    before = file.tell()
    file.seek(offset + start)
    while (more := file.read(CHUNK)) and not (text := more.lstrip(BLANKS)):
        pass
    file.seek(before)
    return not text or text[0] == NEWLINE
