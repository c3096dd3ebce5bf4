"""Time and memory of a piece of work, taken inside the process that does it."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STATUS = Path("/proc/self/status")
MEGABYTE = 1e6


@dataclass(slots=True)
class Reading:
    """Filled when the work is done."""

    seconds: float = 0.0
    resident: float = 0.0
    """The most memory in use during the work, above what was in use before it, in MB: mapped files count as well."""
    private: float = 0.0
    """What the work left in memory of the process's own, in MB: mapped files, which the system may take back, do not
    count."""


@contextmanager
def reading() -> Iterator[Reading]:
    """Measure what happens inside. Memory is 0 where the system does not tell."""
    result = Reading()
    gc.collect()
    _forget_peak()
    resident, private = memory_of("self", "VmRSS"), memory_of("self", "RssAnon")
    start = time.perf_counter()
    yield result
    result.seconds = time.perf_counter() - start
    result.resident = max(0.0, memory_of("self", "VmHWM") - resident)
    result.private = max(0.0, memory_of("self", "RssAnon") - private)


def median_seconds(work: Callable[[], object], times: int) -> float:
    """The median of several calls in this process, after one that is not counted."""
    work()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def memory_of(process: int | str, name: str) -> float:
    """A line of a process's status, in MB; 0 where there is none."""
    status = Path(f"/proc/{process}/status")
    if not status.exists():
        return 0.0
    lines = (line.split() for line in status.read_text(encoding="ascii", errors="replace").splitlines())
    return next((int(words[1]) * 1024 / MEGABYTE for words in lines if words[0] == f"{name}:"), 0.0)


def _forget_peak() -> None:
    """Let the peak start again from what is in use now (Linux)."""
    switch = Path("/proc/self/clear_refs")
    if switch.exists():
        switch.write_text("5", encoding="ascii")
