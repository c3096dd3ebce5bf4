"""Paths that nobody may look at: in a folder that may not be entered, say, or on a disk that is gone."""

from __future__ import annotations

from pathlib import Path

from lading.errors import ABSENT, CorpusError


def refuse_locked(path: Path) -> None:
    """Refuse a path that cannot be looked at. That it does not exist is for others to say."""
    if error := _complaint(path):
        raise CorpusError(
            found=f"{path}, which cannot be looked at ({error.strerror})",
            wanted="a path that may be read",
            consequence="nothing was read",
        ) from error


def is_locked(path: Path) -> bool:
    """Whether a path cannot be looked at: then nobody knows what is there."""
    return _complaint(path) is not None


def _complaint(path: Path) -> OSError | None:
    try:
        path.stat()
    except ValueError:
        return None
    except OSError as error:
        return None if error.errno in ABSENT else error
    return None
