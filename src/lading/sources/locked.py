"""Paths that nobody may look at."""

from __future__ import annotations

import errno
from pathlib import Path

from lading.errors import CorpusError


def refuse_locked(path: Path) -> None:
    """Refuse a path that cannot be looked at: in a folder that may not be entered, say, or on a disk that is gone.

    That a path does not exist is for others to say.
    """
    try:
        path.stat()
    except ValueError:
        return
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return
        raise CorpusError(
            found=f"{path}, which cannot be looked at ({error.strerror})",
            wanted="a path that may be read",
            consequence="nothing was read",
        ) from error
