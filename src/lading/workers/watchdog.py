"""A sample that hangs while it is read is given up by name, and the run goes on.

    steps     whoever decodes in steps looks at the clock between them (`media.deadline`), in any process
    alarm     in a process of ours, a signal interrupts whatever Python does or waits for
    end       a worker that hangs in C all the same, where Python hears no signal, ends itself, with a traceback; the
              one that takes its place refuses the sample that was being read

A process is ours if we started it to read samples. In the user's own (`num_workers=0`) there are the steps alone: its
signals are not ours, and it must not end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import NoReturn, TypeVar

import torch
from torch.utils.data import get_worker_info

from lading.records import SampleKey
from lading.workers import pool
from lading.workers.deadline import overdue, within
from lading.workers.end_timer import EndTimer, ended_itself

T = TypeVar("T")
AGAIN = 1.0
"""Seconds after which the alarm rings again, where somebody made light of it."""
DEAF, LITTLE = 1.5, 2.0
"""A worker that has not heard the alarm ends itself after so many times the limit, and so many seconds."""

_listening = False


class _Alarm(BaseException):
    """Not an `Exception`: libraries catch those, and would carry on."""


def _ring(number: int, frame: FrameType | None) -> NoReturn:
    raise _Alarm


def _ours() -> bool:
    """Whether the alarm may be used here; if so, it is heard from now on."""
    global _listening  # noqa: PLW0603 - it is about the process
    if not (pool.is_pool_process or get_worker_info() is not None):
        return False
    if not _listening and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, _ring)
        _listening = True
    return _listening


class Watchdog:
    """Gives every sample so many seconds. What a worker hung on for good is `refused`, by number, in the next one."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.refused: set[int] = set()
        # In shared memory: the number of the sample that is being read. A dead worker cannot be asked.
        self._note = torch.tensor([-1]).share_memory_()  # type: ignore[no-untyped-call]  # torch left it untyped
        self._end: EndTimer | None = None

    def run(self, key: SampleKey, work: Callable[[], T]) -> T:
        """What `work` gives in time; a named skip where it takes longer."""
        if self.seconds is None:
            return work()
        if key.index in self.refused:
            raise overdue(self.seconds, "a sample that no alarm interrupts")
        with within(self.seconds):
            return self._alarmed(key, work, self.seconds) if _ours() else work()

    def _alarmed(self, key: SampleKey, work: Callable[[], T], seconds: float) -> T:
        self._note.numpy()[0] = key.index
        if get_worker_info() is not None:
            self._end = self._end or EndTimer()
            self._end.set(seconds * DEAF + LITTLE)
        try:
            signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
            try:
                return work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _Alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)  # it may have rung just before it was switched off
            raise overdue(seconds, "a sample that was") from None
        finally:
            self._note.numpy()[0] = -1

    def rest(self) -> None:
        """A worker has done what it was asked; it may now wait for as long as it likes."""
        if self._end is not None:
            self._end.clear()

    def bury(self, exit_code: int | None) -> None:
        """A worker died. If it ended itself, the sample that was being read was why."""
        index = int(self._note[0])
        if index >= 0 and ended_itself(exit_code):
            self.refused.add(index)
        self._note[0] = -1
