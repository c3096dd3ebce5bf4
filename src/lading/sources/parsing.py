"""JSON text → a row's value, and a parser's complaint → file, line, column and the offending text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lading.errors import Reason, SkipSample

SHOWN = 40
"""Characters of the offending text on each side."""
READABLE = "numbers of a few thousand digits at most"
_ARRAY = "; an array of many belongs into a file whose name ends in .json"


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
