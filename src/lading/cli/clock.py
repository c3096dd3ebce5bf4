"""How long a command took, by the clock on the wall: loading torch and opening files are part of it."""

from __future__ import annotations

import time
from contextvars import ContextVar

_began: ContextVar[float] = ContextVar("lading_command_began")


def begin(at: float | None = None) -> None:
    """A command began at this time (`time.monotonic`), or now."""
    _began.set(time.monotonic() if at is None else at)


def took() -> float:
    """Seconds since the command began.

    >>> begin(time.monotonic() - 5)
    >>> round(took())
    5
    """
    return time.monotonic() - _began.get()
