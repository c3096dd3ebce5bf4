"""Room for the files of a corpus: each stays open while it is memory-mapped, and a process may have so many.

The usual limit (1024) is a soft one, which a process may raise for itself and for those it starts. Past it, whatever
opens a file next fails, wherever that is: in a worker that sends a batch, the batch is lost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from lading.errors import ConfigError
from lading.sources.index import KEPT_FROM

FOR_ALL_ELSE, AT_LEAST = 512, 64
"""Open files that are none of the corpus's (libraries, pipes, tensors on their way from workers): as many as there may
be, and as many as there are in any case."""


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
