"""Where what was worked out once is kept, and how it gets there."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from lading.addresses import refuse_writing_to_address

BESIDE = ".lading"
"""The folder beside a data file."""

Cache = bool | str | os.PathLike[str] | None
"""Whether something is kept, or the folder it is kept in."""


def cache_folders(data_file: Path) -> tuple[Path, ...]:
    """Where something may be kept about a data file, if no folder was named; the last is where more is written.

    That is `$LADING_CACHE`, else `.lading` beside the file, else, where nothing may be written there, the user's own
    cache. What was kept beside the file before it was mounted for reading only is looked for all the same.
    """
    chosen = os.environ.get("LADING_CACHE")
    if chosen:
        refuse_writing_to_address(chosen)
        return (Path(chosen),)
    beside = data_file.absolute().parent / BESIDE
    if _may_write(beside if beside.is_dir() else beside.parent):
        return (beside,)
    return (beside, _users())


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which takes its place in one step at the end: a reader sees the old one or the new one, whole,
    whoever else writes it and whenever this process ends.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "notes") as file:
    ...         written = file.write(b"whole")
    ...         early = (Path(folder) / "notes").exists()
    ...     early, (Path(folder) / "notes").read_bytes()
    (False, b'whole')
    """
    refuse_writing_to_address(path)
    if path.exists() and not path.is_file():
        # A pipe or a device: something reads from it, or from nowhere else.
        with path.open("wb") as file:
            yield file
        return
    path = path.resolve()  # a link stays one
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not `tempfile`'s: who may read it is then the user's own setting (umask), as with any file.
    beside = path.with_name(f".{path.name}-{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            yield file
        beside.replace(path)
    finally:
        # It is there only if it did not take its place.
        beside.unlink(missing_ok=True)


def _users() -> Path:
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lading"
    except RuntimeError:  # a user without a name or a home, as containers have
        return Path(tempfile.gettempdir()) / f"lading-{os.getuid()}"


def _may_write(folder: Path) -> bool:
    # The mode is looked at too: it stops nobody who is root, but it says what the owner wants.
    try:
        return os.access(folder, os.W_OK) and bool(folder.stat().st_mode & 0o222)
    except OSError:
        return False
