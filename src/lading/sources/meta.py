"""The meta file: which data sets make up a corpus, and how each is read.

{"receipts": {"file_name": "receipts.jsonl", "media_dir": "pictures", "sample_ratio": 0.5}}
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

from lading.errors import ConfigError, UnknownName
from lading.sources.json_array import load_json

OPTIONS = ("file_name", "columns", "tags", "media_dir", "sample_ratio")
COLUMNS = ("messages", "images", "videos", "audios")
TAGS = ("role_tag", "content_tag", "user_tag", "assistant_tag", "system_tag", "tool_tag")


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """One data set of a corpus. Paths are resolved against the meta file's folder."""

    name: str
    file: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    media_dir: Path | None = None
    sample_ratio: float = 1.0


def read_meta(path: Path, dataset_names: Sequence[str] | None = None) -> tuple[SourceConfig, ...]:
    """The data sets of a meta file, all of them or those named. Every mistake in it is told at once."""
    entries = load_json(path)
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(
            found=f"a JSON {type(entries).__name__}", wanted='{"name": {"file_name": …}, …}', where=str(path)
        )
    for name in dataset_names or ():
        if name not in entries:
            raise UnknownName(kind="data set", name=name, known=entries, where=str(path))
    if len(set(dataset_names or ())) != len(dataset_names or ()):
        raise ConfigError(found=f"a data set named twice in {list(dataset_names or ())}", wanted="each once")
    problems = [problem for name, entry in entries.items() for problem in _problems(name, entry)]
    if problems:
        raise ConfigError(found="; ".join(problems), consequence="nothing was read", where=str(path))
    chosen = dataset_names or list(entries)
    return tuple(_config(name, entries[name], path.parent) for name in chosen)


def _problems(name: str, entry: object) -> list[str]:
    if not isinstance(entry, dict):
        return [f"{name}: a {type(entry).__name__} where an object belongs"]
    problems = [] if isinstance(entry.get("file_name"), str) else [f"{name}: no file_name"]
    problems += _unknown(name, "option", entry, OPTIONS)
    problems += _unknown(name, "column", entry.get("columns", {}), COLUMNS)
    problems += _unknown(name, "tag", entry.get("tags", {}), TAGS)
    ratio = entry.get("sample_ratio", 1.0)
    if not isinstance(ratio, (int, float)) or isinstance(ratio, bool) or not 0 <= ratio < math.inf:
        problems.append(f"{name}: sample_ratio {ratio!r} where a number from 0 up belongs")
    if not isinstance(entry.get("media_dir", ""), (str, NoneType)):
        problems.append(f"{name}: media_dir {entry['media_dir']!r} where a folder belongs")
    return problems


def _unknown(name: str, kind: str, given: Any, known: Sequence[str]) -> list[str]:
    if not isinstance(given, dict):
        return [f"{name}: {kind}s given as a {type(given).__name__}, not an object"]
    wrong = [
        f"{name}: {kind} {key!r} is {value!r}, not a name" for key, value in given.items() if _no_name(kind, value)
    ]
    unknown = [UnknownName(kind=kind, name=key, known=known) for key in given if key not in known]
    said = [f"{name}: {error.found} ({error.consequence or 'known: ' + ', '.join(known)})" for error in unknown]
    return [*wrong, *said]


def _no_name(kind: str, value: object) -> bool:
    return kind != "option" and not isinstance(value, str)


def _config(name: str, entry: Mapping[str, Any], folder: Path) -> SourceConfig:
    media_dir = entry.get("media_dir")
    return SourceConfig(
        name=name,
        file=folder / entry["file_name"],
        columns=dict(entry.get("columns", {})),
        tags=dict(entry.get("tags", {})),
        media_dir=folder / media_dir if media_dir else None,
        sample_ratio=float(entry.get("sample_ratio", 1.0)),
    )
