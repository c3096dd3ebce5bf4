"""What tells one state of a data file from another, wherever the file lies."""

from __future__ import annotations

import hashlib
from pathlib import Path

WHOLE = 256 << 20
"""Files up to this many bytes are read whole; of larger ones, blocks spread evenly over all of it."""
BLOCKS, BLOCK = 1024, 64 << 10


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
