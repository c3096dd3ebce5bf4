"""The meta file: which data sets make up a corpus, and how each is read.

{"receipts": {"file_name": "receipts.jsonl", "media_dir": "pictures", "sample_ratio": 0.5},
 "charts": {"file_name": "charts", "split": "train[:1000]", "format": "question_answer"},
 "scans": {"hf_hub_url": "somebody/scans", "subset": "english", "num_samples": 5000}}

`file_name` is a file, or the folder of a data set that `datasets` understands. `format` is a name of
`lading.conversation.FORMATS`; without it, the first rows show it.

LLaMA-Factory's `dataset_info.json` is read, too:

{"portraits": {"file_name": "portraits.json", "formatting": "sharegpt", "columns": {"messages": "conversations",
               "images": "images"}, "tags": {"role_tag": "from", "content_tag": "value"}}}

What is different there: rows are Alpaca's unless `formatting` names another format; media are looked for in the folder
of the file itself; a data set may come from a hub. Preference pairs (`ranking`) are no conversations: they are left out
with a warning.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import NoneType
from typing import Any

from lading.addresses import address_of, how_to_copy, hub_id_in, kind_of, may_be_hub_id
from lading.errors import ConfigError, UnknownName
from lading.sources.json_array import load_json

logger = logging.getLogger(__name__)

PLACES = ("file_name", "hf_hub_url")
LISTS = ("media_roots",)
TEXTS = ("media_dir", "format", "subset", "split", "folder")
OPTIONS = (*PLACES, *TEXTS, *LISTS, "columns", "tags", "sample_ratio", "num_samples")
MEDIA = ("images", "videos", "audios")
COLUMNS = (
    *("messages", *MEDIA, "system", "tools"),
    *("prompt", "completion", "query", "response", "history"),
    *("question", "answer", "texts"),
)
"""Columns that a source may have under another name; what each is called here."""
MOST_OFTEN = 1000
"""How often the rows of a source may be used in an epoch."""
TAGS = (
    *("role_tag", "content_tag"),
    *("user_tag", "assistant_tag", "function_tag", "system_tag", "tool_tag", "observation_tag"),
)

DATASET_INFO = "dataset_info.json"
FORMATTING = ("alpaca", "sharegpt", "openai")
"""What `formatting` may be in LLaMA-Factory's file; they are called the same here."""
OWN = ("formatting", "ranking", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
"""Keys that only LLaMA-Factory's file has."""
PAIRS = ("chosen", "rejected", "kto_tag")
"""Columns of answers that are compared."""
SEPARATORS = "/\\"


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceConfig:
    """One data set of a corpus. Paths are resolved against the meta file's folder."""

    name: str
    file: Path
    """A file or a folder; for a data set of the hub, its id."""
    hub: bool = False
    """Whether it is to be had from the hub."""
    subset: str | None = None
    split: str = "train"
    """Of a folder or a data set of the hub; it may be cut: `train[:1000]`."""
    folder: str | None = None
    """The folder inside a data set of the hub."""
    format: str | None = None
    """The format of the rows; `None`: their first ones show it."""
    columns: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)
    media_dir: Path | None = None
    opened_in: Path | None = None
    """Where paths are seen from if no media folder was named: the folder that the process was in."""
    media_roots: tuple[Path, ...] = ()
    """Folders below which media must lie, links followed; none: wherever they are."""
    sample_ratio: float = 1.0
    num_samples: int | None = None
    """How many samples are used, whatever their ratio."""


def read_meta(path: Path, dataset_names: Sequence[str] | None = None) -> tuple[SourceConfig, ...]:
    """The data sets of a meta file, all of them or those named. All mistakes in it are reported together."""
    entries = load_json(path, unique=True)
    if not isinstance(entries, dict) or not entries:
        raise ConfigError(
            found=f"a JSON {type(entries).__name__}", wanted='{"name": {"file_name": …}, …}', where=str(path)
        )
    for name in dataset_names or ():
        if name not in entries:
            raise UnknownName(kind="data set", name=name, known=entries, where=str(path))
    if len(set(dataset_names or ())) != len(dataset_names or ()):
        raise ConfigError(found=f"a data set named twice in {list(dataset_names or ())}", wanted="each once")
    if path.name == DATASET_INFO or any(set(OWN) & set(own) for own in entries.values() if isinstance(own, dict)):
        entries = _from_dataset_info(path, entries, dataset_names)
    problems = [problem for name, entry in entries.items() for problem in _problems(name, entry, path.parent)]
    if problems:
        raise ConfigError(found="; ".join(problems), consequence="nothing was read", where=str(path))
    chosen = dataset_names or list(entries)
    return tuple(_config(name, entries[name], path.parent) for name in chosen)


def _problems(name: str, entry: object, folder: Path) -> list[str]:
    if not isinstance(entry, dict):
        return [f"{name}: a {type(entry).__name__} where an object belongs"]
    problems = []
    if sum(isinstance(entry.get(place), str) for place in PLACES) != 1:
        both = all(place in entry for place in PLACES)
        problems = [f"{name}: both {' and '.join(PLACES)}, where one belongs" if both else f"{name}: no file_name"]
    problems += [f"{name}: an empty {place}, where a name belongs" for place in PLACES if entry.get(place) == ""]
    problems += _no_paths(name, entry, folder)
    problems += _unknown(name, "option", entry, OPTIONS)
    problems += _unknown(name, "column", entry.get("columns", {}), COLUMNS)
    problems += _unknown(name, "tag", entry.get("tags", {}), TAGS)
    ratio = entry.get("sample_ratio", 1.0)
    if not isinstance(ratio, (int, float)) or isinstance(ratio, bool) or not 0 <= ratio <= MOST_OFTEN:
        problems.append(f"{name}: sample_ratio {ratio!r} where a number from 0 to {MOST_OFTEN:,} belongs")
    count = entry.get("num_samples")
    if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 0):
        problems.append(f"{name}: num_samples {count!r} where a whole number from 0 up belongs")
    wrong = [option for option in TEXTS if not isinstance(entry.get(option), (str, NoneType))]
    problems += [f"{name}: {option} {entry[option]!r} where a name belongs" for option in wrong]
    wrong = [option for option in LISTS if option in entry and not _names(entry[option])]
    return [*problems, *(f"{name}: {option} {entry[option]!r} where a list of folders belongs" for option in wrong)]


def _no_paths(name: str, entry: Mapping[str, Any], folder: Path) -> list[str]:
    """Addresses where paths or ids belong, and an id of the hub where a path does."""
    problems = []
    roots = entry.get("media_roots")
    given = [(option, entry.get(option)) for option in (*PLACES, "media_dir")]
    given += [("media_roots", root) for root in (roots if isinstance(roots, list) else [])]
    for option, value in given:
        address = address_of(value) if isinstance(value, str) else ""
        found, of_data = hub_id_in(address)
        if found and of_data and option in PLACES:
            problems.append(f'{name}: {option} {address!r} where "hf_hub_url": "{found}" belongs')
        elif address:
            belongs = "an id of the hub" if option == "hf_hub_url" else f"a local path ({how_to_copy(address)})"
            problems.append(f"{name}: {option} is {kind_of(address)} {address}, where {belongs} belongs")
    file_name = entry.get("file_name")
    if isinstance(file_name, str) and may_be_hub_id(file_name) and not (folder / file_name).parent.exists():
        hint = f'if it is a data set of the hub, write "hf_hub_url": "{file_name}"'
        problems.append(f"{name}: no file or folder {file_name} beside the meta file; {hint}")
    return problems


def _names(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) and one for one in value)


def media_places(config: SourceConfig, folder: Path) -> dict[str, Any]:
    """A source's media folder and roots, as a meta file in this folder names them."""
    seen = {"media_dir": os.path.relpath(config.media_dir, folder)} if config.media_dir is not None else {}
    roots = [os.path.relpath(root, folder) for root in config.media_roots]
    return {**seen, **({"media_roots": roots} if roots else {})}


def _unknown(name: str, kind: str, given: Any, known: Sequence[str]) -> list[str]:
    if not isinstance(given, dict):
        return [f"{name}: {kind}s given as a {type(given).__name__}, not an object"]
    wrong = [
        f"{name}: {kind} {key!r} is {value!r}, not a name"
        for key, value in given.items()
        if kind != "option" and not isinstance(value, str)
    ]
    unknown = [UnknownName(kind=kind, name=key, known=known) for key in given if key not in known]
    return wrong + [f"{name}: {own.found} ({own.consequence or 'known: ' + ', '.join(known)})" for own in unknown]


def _config(name: str, entry: Mapping[str, Any], folder: Path) -> SourceConfig:
    media_dir, hub = entry.get("media_dir"), entry.get("hf_hub_url")
    return SourceConfig(
        name=name,
        file=Path(hub) if hub else folder / entry["file_name"],
        hub=bool(hub),
        subset=entry.get("subset"),
        split=entry.get("split") or "train",
        folder=entry.get("folder"),
        format=entry.get("format"),
        columns=dict(entry.get("columns", {})),
        tags=dict(entry.get("tags", {})),
        media_dir=folder / media_dir if media_dir else None,
        media_roots=tuple(folder / root for root in entry.get("media_roots", ())),
        sample_ratio=float(entry.get("sample_ratio", 1.0)),
        num_samples=entry.get("num_samples"),
    )


def _from_dataset_info(path: Path, entries: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The entries that are asked for of LLaMA-Factory's file, as a meta file has them."""
    asked = {name: entries[name] for name in names or entries}
    refused = {name: reason for name, entry in asked.items() if (reason := _refusal(entry))}
    if refused and names:
        found = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise ConfigError(found=found, wanted="conversations", consequence="nothing was read", where=str(path))
    for name, reason in refused.items():
        logger.warning("%s: left out: %s", name, reason)
    kept = {name: _entry(name, entry, path) for name, entry in asked.items() if name not in refused}
    remote = [name for name, entry in kept.items() if isinstance(entry, dict) and "hf_hub_url" in entry]
    if remote and not names:
        raise ConfigError(
            found=f"{len(remote)} data sets on a hub ({', '.join(remote[:5])} …) and no choice among them",
            wanted="names of data sets (`dataset_names`, or --dataset)",
            consequence="all of them would be downloaded",
            where=str(path),
        )
    return kept


def _refusal(entry: Any) -> str:
    """Why a data set cannot be had; nothing where it can."""
    if not isinstance(entry, dict):
        return ""
    columns = entry.get("columns", {})
    if entry.get("ranking") or (isinstance(columns, dict) and set(PAIRS) & set(columns)):
        return "preference pairs (ranking), which are no conversations"
    if "file_name" in entry or "hf_hub_url" in entry:
        return ""
    places = [key for key in OWN[2:] if key in entry]
    return f"it comes by {places[0]}; only files and hf_hub_url are read" if places else ""


def _entry(name: str, entry: Any, path: Path) -> Any:
    if not isinstance(entry, dict):
        return entry
    formatting = entry.get("formatting", "alpaca")
    if formatting not in FORMATTING:
        raise UnknownName(kind="formatting", name=str(formatting), known=FORMATTING, where=f"{path}: {name}")
    known = {key: value for key, value in entry.items() if key not in OWN}
    file_name = known.get("file_name")
    if isinstance(file_name, str) and "hf_hub_url" in known:
        # Both may be given; what is here need not be fetched.
        known.pop("hf_hub_url" if (path.parent / file_name).exists() else "file_name")
    return {"format": formatting, "media_dir": ".", **known}


def file_names(wanted: Sequence[str], taken: Iterable[str] = ()) -> list[str]:
    """A name for each file: what is wanted, without what leads to another folder or cannot be written as a name, and
    with a number before it where another has it. Upper and lower case are the same to some file systems.

    >>> file_names(["vqa/train.jsonl", "a.jsonl", "A.jsonl"], taken=["meta.json"])
    ['vqa-train.jsonl', 'a.jsonl', '2-A.jsonl']
    """
    met = {name.casefold() for name in taken}
    names = []
    for number, asked in enumerate(wanted):
        name = "".join(sign if sign.isprintable() and sign not in SEPARATORS else "-" for sign in asked)
        while name.casefold() in met:
            name = f"{number}-{name}"
        met.add(name.casefold())
        names.append(name)
    return names
