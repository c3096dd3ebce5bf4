"""LLaMA-Factory's `dataset_info.json`, in the words of a meta file.

{"portraits": {"file_name": "portraits.json", "formatting": "sharegpt", "columns": {"messages": "conversations",
               "images": "images"}, "tags": {"role_tag": "from", "content_tag": "value"}}}

What is different there: rows are Alpaca's unless `formatting` says otherwise; media are looked for in the folder of
the file itself; a data set may come from a hub. Preference pairs (`ranking`) are no conversations: they are left out,
with a word about it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lading.errors import ConfigError, UnknownName

logger = logging.getLogger(__name__)

NAME = "dataset_info.json"
FORMATTING = ("alpaca", "sharegpt", "openai")
"""What `formatting` may say; they are called the same here."""
OWN = ("formatting", "ranking", "ms_hub_url", "om_hub_url", "script_url", "cloud_file_name")
"""Keys that only LLaMA-Factory's file has."""
PAIRS = ("chosen", "rejected", "kto_tag")
"""Columns of answers that are compared."""


def is_dataset_info(path: Path, entries: Mapping[str, Any]) -> bool:
    """Whether a meta file is LLaMA-Factory's.

    >>> is_dataset_info(Path("my.json"), {"a": {"file_name": "a.json", "formatting": "sharegpt"}})
    True
    """
    return path.name == NAME or any(isinstance(entry, dict) and set(OWN) & set(entry) for entry in entries.values())


def translated(path: Path, entries: Mapping[str, Any], names: Sequence[str] | None) -> dict[str, Any]:
    """The entries that are asked for, as a meta file has them."""
    asked = {name: entries[name] for name in names or entries}
    refused = {name: reason for name, entry in asked.items() if (reason := _refusal(entry))}
    if refused and names:
        said = "; ".join(f"{name}: {reason}" for name, reason in refused.items())
        raise ConfigError(found=said, wanted="conversations", consequence="nothing was read", where=str(path))
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
    formatting = entry.get("formatting", FORMATTING[0])
    if formatting not in FORMATTING:
        raise UnknownName(kind="formatting", name=str(formatting), known=FORMATTING, where=f"{path}: {name}")
    known = {key: value for key, value in entry.items() if key not in OWN}
    file_name = known.get("file_name")
    if isinstance(file_name, str) and "hf_hub_url" in known:
        # Both may be given; what is here need not be fetched.
        known.pop("hf_hub_url" if (path.parent / file_name).exists() else "file_name")
    return {"format": formatting, "media_dir": ".", **known}
