"""Where the elements of a JSON array begin. Each is parsed once, by `json` itself, and let go of.

Parsing is what tells a good file from a bad one before training starts, and `json` is then right by definition about
strings, escapes and brackets. Only a stretch of the file is in memory: as much as its longest element, or a chunk.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lading.sources.index import BytesFile, Positions

CHUNK = 1 << 20
"""Bytes read together."""
FLUSHED = 1 << 16
"""Starts handed over together."""

SPACE = b" \t\r\n"
_SPACES = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode


class NoArray(ValueError):
    """Not one array of valid JSON in UTF-8. What it is instead, a parser of the whole file says."""


def begins_array(path: Path) -> bool:
    """Whether the first sign of a file is the `[` of an array."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(CHUNK).removeprefix(codecs.BOM_UTF8).lstrip(SPACE).startswith(b"[")


def scan_elements(file: BytesFile, size: int) -> Iterator[tuple[Positions, Positions]]:
    """Starts (see `RowIndex`) of the elements of an array; the last one is where the array closes. No gaps.

    >>> import io
    >>> text = b'[{"a": "]"}, [1, 2],3 ]'
    >>> [starts.tolist() for starts, gaps in scan_elements(io.BytesIO(text), len(text))]
    [[1, 13, 20, 22]]
    """
    window = _Window(file, size)
    none = np.zeros(0, dtype=np.int64)
    starts: list[int] = []
    sign = window.sign()
    if sign != "[":
        raise NoArray
    window.step()
    if window.sign() == "]":
        sign = "]"
    while sign != "]":
        window.sign()
        starts.append(window.offset)
        sign = window.element()
        if sign == ",":
            window.step()
        if len(starts) == FLUSHED:
            yield np.array(starts, dtype=np.int64), none
            starts = []
    yield np.array([*starts, window.offset], dtype=np.int64), none
    window.step()
    if window.sign():
        raise NoArray


class _Window:
    """A stretch of a file's text, and a place in it. Law: `offset` is the place in bytes from the file's beginning."""

    def __init__(self, file: BytesFile, size: int) -> None:
        head = file.read(4)
        if json.detect_encoding(head) not in ("utf-8", "utf-8-sig"):
            raise NoArray
        self.offset = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        file.seek(self.offset)
        self._file, self._left = file, size - self.offset
        # As `json.loads` reads bytes.
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogatepass")
        self._text, self._at = "", 0

    def sign(self) -> str:
        """Go to the next character that is no space; it is "" at the end of the file."""
        while True:
            self._go(_end_of_space(self._text, self._at))
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._more():
                return ""

    def step(self) -> None:
        """Go past a sign of one byte."""
        self._go(self._at + 1)

    def element(self) -> str:
        """Go past an element, to the sign behind it: a comma, or the bracket that closes the array."""
        while True:
            try:
                _, end = _decode(self._text, self._at)
            except json.JSONDecodeError:
                # Broken, or not read to its end yet.
                end = len(self._text)
            # A number may go on behind what was read (1|23, 1.|5): it ends where another sign follows.
            end = _end_of_space(self._text, end)
            if self._text[end : end + 1] in (",", "]"):
                self._go(end)
                return self._text[end]
            if not self._more():
                raise NoArray

    def _go(self, place: int) -> None:
        self.offset += len(self._text[self._at : place].encode("utf-8", "surrogatepass"))
        self._at = place

    def _more(self) -> bool:
        # Twice as much each time, or an element that fills the file would be begun again with every chunk.
        content = self._file.read(min(self._left, max(CHUNK, len(self._text) - self._at))) or b""
        self._left -= len(content)
        self._text = self._text[self._at :] + self._decoder.decode(content, final=not content)
        self._at = 0
        return bool(content)


def _end_of_space(text: str, place: int) -> int:
    found = _SPACES.match(text, place)
    return found.end() if found else place
