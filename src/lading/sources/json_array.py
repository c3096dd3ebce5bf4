"""A JSON file that is one array of objects. A small one is parsed once and kept; of a large one it is found out once
where its elements begin, and each is parsed when it is asked for.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import ConfigError, CorpusError, Reason, SkipSample
from lading.sources.elements import SPACE, scan_elements
from lading.sources.files import file_fingerprint
from lading.sources.index import Mapped, MappedRows
from lading.sources.jsonl import READABLE, excerpt

WHOLE_BELOW = 4 << 20
"""Bytes up to which a file is parsed whole."""


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


class JsonArrayFile:
    """Rows of a JSON array, by number. A file that is no array, or a broken one, is refused at once, as a whole."""

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        self.path = path
        self.cache = cache
        _ = self._elements

    def __len__(self) -> int:
        return len(self._elements)

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "cache": self.cache}

    def where(self, number: int) -> str:
        """`file[number]` of a row, counted from 0 as JSON tools do."""
        return f"{self.path}[{number}]"

    def read(self, number: int) -> Mapping[str, Any]:
        """One row; `SkipSample` when it is not an object."""
        elements = self._elements
        value = elements[number] if isinstance(elements, list) else self._parsed(elements.text(number), number)
        if not isinstance(value, dict):
            raise SkipSample(
                Reason.BAD_ROW,
                found=f"a JSON {type(value).__name__}",
                wanted="one JSON object",
                where=self.where(number),
            )
        return value

    def fingerprint(self, *, timed: bool = True) -> str:
        """What tells one state of the file from another."""
        return file_fingerprint(self.path, timed=timed)

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
