"""When a sample is given up. Whoever decodes in steps asks between them; the skip policy says how long it may take."""

from __future__ import annotations

import time
from contextvars import ContextVar

from lading.errors import Reason, SkipSample

deadline: ContextVar[tuple[float, float] | None] = ContextVar("deadline", default=None)
"""When the time of the sample in hand is over, on the clock that never jumps, and how many seconds there were."""


def seconds_left(name: str) -> float | None:
    """What is left for the medium `name`, if there is a limit; nothing left is a named skip.

    >>> before = deadline.set((time.monotonic() + 60, 60))
    >>> 50 < seconds_left("clip.mp4") <= 60
    True
    >>> deadline.reset(before)
    """
    if (limit := deadline.get()) is None:
        return None
    if (left := limit[0] - time.monotonic()) <= 0:
        raise took_too_long(limit[1], name)
    return left


def took_too_long(seconds: float, name: str) -> SkipSample:
    """The refusal of what took too long."""
    return SkipSample(
        Reason.DECODE_TIMEOUT,
        found=f"{name} still being read after {seconds:g} s",
        wanted="a sample that is read within that time (decode_seconds)",
    )
