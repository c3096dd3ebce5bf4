"""What holds of any data file: whether it may be looked at, how many may be open at once, and what tells its content.

A path may lie in a folder that may not be entered, or on a disk that is gone. Each data file stays open while it is
memory-mapped, and a process may have so many: the usual limit (1024) is a soft one, which a process may raise for
itself and for those it starts. Past it, whatever opens a file next fails, wherever that is: in a worker that sends a
batch, the batch is lost.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from lading.cache import Cache
from lading.errors import ABSENT, ConfigError, CorpusError, Reason, SkipSample
from lading.sources.index import KEPT_FROM

FOR_ALL_ELSE, AT_LEAST = 512, 64
"""Open files that are none of the corpus's (libraries, pipes, tensors on their way from workers): as many as there may
be, and as many as there are in any case."""
WHOLE = 256 << 20
"""Files up to this many bytes are read whole; of larger ones, blocks spread evenly over all of it."""
BLOCKS, BLOCK = 1024, 64 << 10


def refuse_locked(path: Path) -> None:
    """Refuse a path that cannot be looked at. That it does not exist is for others to say."""
    try:
        path.stat()
    except ValueError:  # no file can be called so
        return
    except OSError as error:
        if error.errno in ABSENT:
            return
        raise CorpusError(
            found=f"{path}, which cannot be looked at ({error.strerror})",
            wanted="a path that may be read",
            consequence="nothing was read",
        ) from error


def is_locked(path: Path) -> bool:
    """Whether a path cannot be looked at: then nobody knows what is there."""
    try:
        refuse_locked(path)
    except CorpusError:
        return True
    return False


def make_room(files: Iterable[Path]) -> None:
    """See to it that these may all be open at once, or say how many may not."""
    try:
        import resource
    except ImportError:  # only Unix has it, and such limits
        return
    need = sum(_open_for(path) for path in files)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = math.inf if hard == resource.RLIM_INFINITY else hard
    if most < need + AT_LEAST:
        raise ConfigError(
            found=f"a limit of {hard} open files (ulimit -Hn)",
            wanted=f"{need + AT_LEAST}, for the data files of this corpus",
            consequence="nothing was read; join some of the files, or ask for a higher limit",
        )
    wanted = int(min(need + FOR_ALL_ELSE, most))
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _open_for(path: Path) -> int:
    """How many files are open for a data file: itself, and, of a large one, its index and its lengths."""
    try:
        return 3 if path.stat().st_size >= KEPT_FROM else 1
    except (OSError, ValueError):  # it is not there, or cannot be, or is on the hub; whoever opens it says so
        return 1


def file_fingerprint(path: Path, *, whole: int = WHOLE, timed: bool = True) -> str:
    """A digest of a file's content. Of a file larger than `whole`, of its size, its time of change and 1024 blocks.

    A copy has another time: without it (`timed=False`), a change is noticed that moves or meets one of the blocks.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     file.write(b"one") and file.flush()
    ...     first = file_fingerprint(Path(file.name))
    ...     file.write(b"!") and file.flush()
    ...     file_fingerprint(Path(file.name)) == first
    False
    """
    state = path.stat()
    digest = hashlib.blake2b(str(state.st_size).encode(), digest_size=16)
    with path.open("rb") as file:
        if state.st_size <= whole:
            while content := file.read(1 << 20):
                digest.update(content)
            return digest.hexdigest()
        if timed:
            digest.update(str(state.st_mtime_ns).encode())
        for number in range(BLOCKS):
            file.seek(max(0, state.st_size - BLOCK) * number // (BLOCKS - 1))
            digest.update(file.read(BLOCK))
    return digest.hexdigest()


def refuse_other_json(value: Any, where: str) -> NoReturn:
    """Refuse a row that is JSON, and no object."""
    raise SkipSample(Reason.BAD_ROW, found=f"a JSON {type(value).__name__}", wanted="one JSON object", where=where)


class DataFile:
    """A file of rows. Pickling carries its path alone: workers open the file for themselves."""

    def __init__(self, path: Path, *, cache: Cache = True) -> None:
        self.path, self.cache = path, cache

    def __getstate__(self) -> dict[str, object]:
        return {"path": self.path, "cache": self.cache}

    def fingerprint(self, *, timed: bool = True) -> str:
        """What tells one state of the file from another."""
        return file_fingerprint(self.path, timed=timed)
