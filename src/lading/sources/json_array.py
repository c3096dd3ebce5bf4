"""A JSON file that is one array of objects. It is parsed once; such files are small by custom (use JSONL for more)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import CorpusError, Reason, SkipSample
from lading.sources.parsing import excerpt


def load_json(path: Path) -> Any:
    """Parse a whole JSON file, or say where it breaks."""
    if not path.is_file():
        raise CorpusError(found=f"no file {path}", wanted="a JSON file", consequence="nothing was read")
    try:
        return json.loads(path.read_bytes())
    except json.JSONDecodeError as error:
        raise CorpusError(
            found=f"malformed JSON ({error.msg}) near {excerpt(error.doc, error.pos)}",
            wanted="one JSON value",
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


class JsonArrayFile:
    """Rows of a JSON array, by number."""

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        self.path = path
        self.cache = cache
        _ = self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "cache": self.cache}

    def where(self, number: int) -> str:
        """`file[number]` of a row, counted from 0 as JSON tools do."""
        return f"{self.path}[{number}]"

    def read(self, number: int) -> Mapping[str, Any]:
        """One row; `SkipSample` when it is not an object."""
        value = self._rows[number]
        if not isinstance(value, dict):
            raise SkipSample(
                Reason.BAD_ROW,
                found=f"a JSON {type(value).__name__}",
                wanted="one JSON object",
                where=self.where(number),
            )
        return value

    @cached_property
    def _rows(self) -> list[Any]:
        value = load_json(self.path)
        if not isinstance(value, list):
            raise CorpusError(
                found=f"a JSON {type(value).__name__}", wanted="an array of conversations", where=str(self.path)
            )
        return value
