"""The skip policy: the one guard around the reading of a sample. What fails or hangs becomes a named skip.

A `SkipSample` is a room's own word that a sample cannot be used. Any other error while a sample is read (a decoder that
breaks in a new way, say) must not end a run of a week either: it is written down under `unexpected_error`, with its
type. With `strict`, both are raised. Errors of ours (`ExactnessError`) and of the configuration are always raised.

What takes longer than `decode_seconds` is given up, wherever it hangs:

    in steps       whoever decodes in steps looks at the clock between them (`media.opening`), in any process
    in Python      in a process that was started to read samples, an alarm interrupts whatever Python does or waits for
    in C           a worker that hears no alarm is ended by the process that waits for it (`WorkerWatch`)

In the user's own process (`num_workers=0`) there are the steps alone: its signals are not ours, and it must not end.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import RawArray
from multiprocessing.process import BaseProcess
from types import FrameType
from typing import NoReturn, TypeVar

from torch.utils.data import get_worker_info

from lading.errors import LadingError, Reason, SkipSample
from lading.media.opening import deadline, took_too_long
from lading.records import Dropped, SampleKey
from lading.workers import pool

T = TypeVar("T")
R = TypeVar("R")
ALARM_AGAIN = 1.0
"""Seconds after which the alarm rings again, where somebody made light of it."""

_alarm_is_set_up = False


class _Alarm(BaseException):
    """Not an `Exception`: libraries catch those, and would carry on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipPolicy:
    """How errors of single samples are met, and how long a sample may take."""

    strict: bool = False
    decode_seconds: float | None = None
    """Seconds that a sample may take; `None`: as many as it likes."""
    watch: WorkerWatch | None = None
    """In a worker of the `Loader`: where it notes what it reads."""

    def attempt(self, key: SampleKey, work: Callable[[], T]) -> T | Dropped:
        """What `work` gives, or why the sample is left out."""
        try:
            return work() if self.decode_seconds is None else self._in_time(key, work, self.decode_seconds)
        except SkipSample as skip:
            return self.settle(key, skip)
        except (LadingError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - this is the skip policy: see the module's first lines
            found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            unexpected = SkipSample(Reason.UNEXPECTED_ERROR, found=found, where=key.where)
            unexpected.__cause__ = error
            return self.settle(key, unexpected)

    def _in_time(self, key: SampleKey, work: Callable[[], T], seconds: float) -> T:
        if self.watch is not None:
            self.watch.begin(key.index)
        outer = deadline.set((time.monotonic() + seconds, seconds))
        try:
            if not _alarm_may_ring():
                return work()
            signal.setitimer(signal.ITIMER_REAL, seconds, ALARM_AGAIN)
            try:
                return work()
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except _Alarm:
            signal.setitimer(signal.ITIMER_REAL, 0)  # it may have rung just before it was switched off
            raise took_too_long(seconds, "a sample that was") from None
        finally:
            deadline.reset(outer)
            if self.watch is not None:
                self.watch.end()

    def attempt_each(
        self,
        keys: Sequence[SampleKey],
        read: Callable[[SampleKey], R],
        work: Callable[[list[R]], list[T | SkipSample]],
    ) -> list[T | Dropped]:
        """What `work` makes of all that can be read, at once; what cannot be used says why, in its place.

        Where `work` breaks, every sample is tried by itself, so that only one is lost.
        """
        found = [self.attempt(key, partial(read, key)) for key in keys]
        good = [item for item in found if not isinstance(item, Dropped)]
        made: Iterator[T | SkipSample | Dropped]
        try:
            made = iter(work(good))
        except (LadingError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - the same policy, for all at once: the culprit is found one by one
            pairs = zip(keys, found, strict=True)
            made = iter(
                [self.attempt(key, partial(_alone, work, own)) for key, own in pairs if not isinstance(own, Dropped)]
            )
        results: list[T | Dropped] = []
        for key, item in zip(keys, found, strict=True):
            outcome = item if isinstance(item, Dropped) else next(made)
            results.append(self.settle(key, outcome) if isinstance(outcome, SkipSample) else outcome)
        return results

    def settle(self, key: SampleKey, skip: SkipSample) -> Dropped:
        """Write a refusal down, or raise it with the sample's place."""
        if self.strict:
            placed = skip if skip.where else skip.at(key.where)
            raise placed from skip.__cause__
        return Dropped(key=key, reason=skip.reason, detail=str(skip))


def _alone(work: Callable[[list[R]], list[T]], item: R) -> T:
    return work([item])[0]


def _alarm_may_ring() -> bool:
    """Whether this process was started to read samples; if so, the alarm is heard from now on."""
    global _alarm_is_set_up  # noqa: PLW0603 - it is about the process
    if not (pool.is_pool_process or get_worker_info() is not None):
        return False
    if not _alarm_is_set_up and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, _ring)
        _alarm_is_set_up = True
    return _alarm_is_set_up


def _ring(number: int, frame: FrameType | None) -> NoReturn:
    raise _Alarm


LATE_FACTOR, LATE_SECONDS = 1.5, 2.0
"""A worker is late after so many times the limit, and so many seconds: by then it should have heard its alarm."""
LAST_WORDS = signal.SIGVTALRM
"""The signal that has a worker print where it is, and end."""
ENDING_SECONDS = 5.0
"""A worker may take so long to end."""
NOTHING = -1


class WorkerWatch:
    """Watches one worker: what it reads and since when, and which samples its predecessors hung on."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds
        self.refused: set[int] = set()
        self._note = RawArray("d", [NOTHING, 0.0])
        self._prints_traceback = False

    def begin(self, index: int) -> None:
        """In the worker: this sample is going to be read. One that a worker hung on before is refused."""
        if index in self.refused and self.seconds is not None:
            raise took_too_long(self.seconds, "a sample that no alarm interrupts")
        if not self._prints_traceback:
            # Written in C: neither a lock nor a loop there keeps it from printing.
            signal.signal(LAST_WORDS, signal.SIG_DFL)  # whatever the parent did with it
            faulthandler.register(LAST_WORDS, file=2, all_threads=True, chain=True)
            self._prints_traceback = True
        self._note[1] = time.monotonic()
        self._note[0] = index

    def end(self) -> None:
        """In the worker: nothing is being read; it may wait for as long as it likes."""
        self._note[0] = NOTHING

    def end_if_late(self, worker: BaseProcess) -> bool:
        """In the parent: end a worker that is late, and have the next one refuse what it was reading."""
        index, since = self._note
        if self.seconds is None or index == NOTHING or worker.pid is None:
            return False
        if time.monotonic() - since < self.seconds * LATE_FACTOR + LATE_SECONDS:
            return False
        os.kill(worker.pid, LAST_WORDS)
        worker.join(ENDING_SECONDS)
        worker.kill()
        worker.join(ENDING_SECONDS)
        if (self._note[0], self._note[1]) == (index, since):  # and it had not gone on just then
            self.refused.add(int(index))
        self._note[0] = NOTHING
        return True
