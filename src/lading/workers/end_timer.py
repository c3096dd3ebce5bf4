"""A process that is to end by itself at a certain time, whatever it does then.

The kernel sends it a signal, which ends it with a traceback: neither a lock nor a loop in C keeps that from happening.
Python's own way (`faulthandler.dump_traceback_later`) has a thread for it. A worker that was forked does not have its
parent's thread, and waits for it forever if the parent used the same function; so it is used only where no kernel timer
is to be had (on macOS, where workers are not forked).
"""

from __future__ import annotations

import ctypes
import faulthandler
import math
import signal
import sys
from functools import cache
from typing import Any

SIGNAL = signal.SIGVTALRM
_MONOTONIC = 1


class _Event(ctypes.Structure):
    """`struct sigevent`, of which a signal needs the number alone."""

    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_int * 12),
    )


class _Times(ctypes.Structure):
    """`struct itimerspec`: how often again, and when first."""

    _fields_ = (
        ("again_seconds", ctypes.c_long),
        ("again_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class EndTimer:
    """Set anew for everything that may hang; a process has its own, and must make it itself."""

    def __init__(self) -> None:
        self._library, self._timer = _library(), ctypes.c_void_p()
        if self._library is None:
            return
        signal.signal(SIGNAL, signal.SIG_DFL)  # whatever the parent did with it
        faulthandler.register(SIGNAL, file=_errors(), all_threads=True, chain=True)
        event = _Event(signal=SIGNAL)
        if self._library.timer_create(_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer)):
            self._library = None

    def set(self, seconds: float) -> None:
        """End this process in so many seconds, unless it is set again or cleared before."""
        if self._library is None:
            faulthandler.dump_traceback_later(seconds, exit=True, file=_errors())
        else:
            self._settle(seconds)

    def clear(self) -> None:
        """It may live."""
        if self._library is None:
            faulthandler.cancel_dump_traceback_later()
        else:
            self._settle(0)

    def _settle(self, seconds: float) -> None:
        part, whole = math.modf(seconds)
        times = _Times(seconds=int(whole), nanoseconds=int(part * 1e9))
        self._library.timer_settime(self._timer, 0, ctypes.byref(times), None)


def ended_itself(exit_code: int | None) -> bool:
    """Whether a process that is gone was ended by its timer, and not by somebody else."""
    return exit_code == (1 if _library() is None else -SIGNAL)


def _errors() -> Any:
    return sys.__stderr__ or 2


@cache
def _library() -> Any:
    """The C library, if it has such timers."""
    for name in (None, "librt.so.1"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        if hasattr(library, "timer_create"):
            return library
    return None
