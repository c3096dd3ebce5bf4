"""Where counted lengths are kept."""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = ".lading"
"""The folder beside a data file."""


def cache_folder(data_file: Path) -> Path:
    """The folder for a data file's lengths, where none was named: `$LADING_CACHE`, else `.lading` beside the file,
    else, where nothing may be written there, the user's own cache.
    """
    chosen = os.environ.get("LADING_CACHE")
    if chosen:
        return Path(chosen)
    beside = data_file.absolute().parent / BESIDE
    return beside if _may_write(beside if beside.is_dir() else beside.parent) else _users()


def _users() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lading"


def _may_write(folder: Path) -> bool:
    # The mode is looked at too: it stops nobody who is root, but it says what the owner wants.
    try:
        return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
    except OSError:
        return False
