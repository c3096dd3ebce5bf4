"""When a sample is given up. Whoever decodes in steps asks between them; the loader says how long it may take."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lading.errors import Reason, SkipSample

_deadline: ContextVar[tuple[float, float] | None] = ContextVar("deadline", default=None)
"""When the time is over, on the clock that never jumps, and how many seconds there were."""


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Inside, a sample may take so many seconds; with `None`, as many as it likes."""
    before = _deadline.set(None if seconds is None else (time.monotonic() + seconds, seconds))
    try:
        yield
    finally:
        _deadline.reset(before)


def seconds_left(name: str) -> float | None:
    """What is left for the medium `name`; nothing left is a named skip.

    >>> with within(60):
    ...     50 < seconds_left("clip.mp4") <= 60
    True
    """
    if (deadline := _deadline.get()) is None:
        return None
    if (left := deadline[0] - time.monotonic()) <= 0:
        raise overdue(deadline[1], name)
    return left


def overdue(seconds: float, name: str) -> SkipSample:
    """The refusal of what took too long."""
    return SkipSample(
        Reason.DECODE_TIMEOUT,
        found=f"{name} still being read after {seconds:g} s",
        wanted="a sample that is read within that time (decode_seconds)",
    )
