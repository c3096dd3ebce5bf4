"""A JSON file that is one array of objects. A small one is parsed once and kept; of a large one it is found out once
where its elements begin, and each is parsed when it is asked for.

Finding them parses each once, by `json` itself, and lets go of it: that tells a good file from a bad one before
training starts, and `json` is right by definition about strings, escapes and brackets. Only a segment of the file is in
memory: as much as its longest element, or a chunk.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from lading.cache import Cache
from lading.errors import ConfigError, CorpusError
from lading.sources.files import DataFile, refuse_other_json
from lading.sources.index import BytesFile, Mapped, MappedRows, Positions
from lading.sources.jsonl import READABLE, excerpt

WHOLE_BELOW = 4 << 20
"""Bytes up to which a file is parsed whole."""
CHUNK = 1 << 20
"""Bytes read together."""
FLUSHED = 1 << 16
"""Starts handed over together."""

SPACE = b" \t\r\n"
_SPACES = re.compile(r"[ \t\r\n]*")
_decode = json.JSONDecoder().raw_decode

_LINES = "; if there is one on every line, a name that ends in .jsonl"


def load_json(path: Path, *, unique: bool = False) -> Any:
    """Parse a whole JSON file, or say where it breaks. With `unique`, no name may stand twice in one object."""
    if not path.is_file():
        raise CorpusError(found=f"no file {path}", wanted="a JSON file", consequence="nothing was read")
    try:
        return json.loads(path.read_bytes(), object_pairs_hook=partial(_unique, str(path)) if unique else None)
    except json.JSONDecodeError as error:
        raise CorpusError(
            found=f"malformed JSON ({error.msg}) near {excerpt(error.doc, error.pos)}",
            wanted="one JSON value" + (_LINES if error.msg == "Extra data" else ""),
            consequence="no row of this file can be trusted",
            where=f"{path}:{error.lineno}:{error.colno}",
        ) from error
    except RecursionError as error:
        raise CorpusError(
            found="JSON nested too deeply", wanted="an array of conversations", where=str(path)
        ) from error
    except UnicodeDecodeError as error:
        raise CorpusError(
            found=f"a byte that is not UTF-8 at offset {error.start}", wanted="JSON in UTF-8", where=str(path)
        ) from error
    except ConfigError:
        # It is a ValueError, too, and says what is wrong.
        raise
    except ValueError as error:
        raise CorpusError(
            found=f"a value that is not read ({error})",
            wanted=READABLE,
            consequence="no row of this file was read",
            where=str(path),
        ) from error


def _unique(where: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Python's parser keeps the last of two, and says nothing of the first.
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = sorted(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise ConfigError(
            found=f"{', '.join(map(repr, twice))} more than once",
            wanted="every name once",
            consequence="only the last would be read; nothing was",
            where=where,
        )
    return found


class JsonArrayFile(DataFile):
    """Rows of a JSON array, by number. A file that is no array, or a broken one, is refused at once, as a whole."""

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        super().__init__(path, cache=cache)
        _ = self._elements

    def __len__(self) -> int:
        elements = self._elements
        return len(elements) if isinstance(elements, list) else len(elements.index)

    def where(self, number: int) -> str:
        """`file[number]` of a row, counted from 0 as JSON tools do."""
        return f"{self.path}[{number}]"

    def read(self, number: int) -> Mapping[str, Any]:
        """One row; `SkipSample` when it is not an object."""
        elements = self._elements
        value = elements[number] if isinstance(elements, list) else self._parsed(elements.text(number), number)
        if not isinstance(value, dict):
            refuse_other_json(value, self.where(number))
        return value

    @cached_property
    def _elements(self) -> list[Any] | MappedRows:
        if self.path.is_file() and self.path.stat().st_size >= WHOLE_BELOW:
            try:
                return MappedRows(self.path, kind="elements", scan=scan_elements, whole=_is_element, cache=self.cache)
            except (ValueError, RecursionError):
                # What is wrong with it, and where, is said below.
                pass
        value = load_json(self.path)
        if not isinstance(value, list):
            raise CorpusError(
                found=f"a JSON {type(value).__name__}", wanted="an array of conversations", where=str(self.path)
            )
        return value

    def _parsed(self, text: bytes, number: int) -> Any:
        try:
            return json.loads(text.rstrip(SPACE + b","))
        except ValueError as error:
            # It was valid when it was indexed.
            raise CorpusError(
                found=f"another element than before ({error})",
                wanted="a file that does not change while it is read",
                where=self.where(number),
            ) from error


def _is_element(text: Mapped, start: int, stop: int) -> bool:
    if start == 0 or stop == len(text) or text[start - 1] not in SPACE + b",[":
        return False
    return text[stop - 1] in SPACE + b"," or text[stop] == ord("]")


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
    """A segment of a file's text, and a place in it. Law: `offset` is the place in bytes from the file's beginning."""

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
