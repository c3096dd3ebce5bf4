"""Where the lines of a file begin, and which are blank. Nothing is parsed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lading.sources.index import BytesFile, Positions

CHUNK = 1 << 20
"""Bytes looked at together: they stay in the processor's cache, and memory does not grow with the file."""
LOOK_AHEAD = 64

NEWLINE = ord("\n")
BLANKS = b" \t\r"
_SUSPECT = np.zeros(256, dtype=bool)
_SUSPECT[[*BLANKS, NEWLINE]] = True


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
