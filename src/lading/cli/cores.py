"""How many processes a command starts, where nobody says."""

from __future__ import annotations

import os


def own_cores() -> int:
    """The cores that this process may use; all of the machine's where the system does not tell (it is Linux that does).

    >>> own_cores() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1
