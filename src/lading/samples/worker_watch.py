"""A worker that hangs in C, where Python hears no alarm, is ended from outside, and the sample that it read is refused.

Worker and parent share a note: the number of the sample that is being read, and since when.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from multiprocessing import RawArray
from multiprocessing.process import BaseProcess

from lading.media.opening import took_too_long

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
