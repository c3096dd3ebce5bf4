"""Memory over a long epoch."""

from __future__ import annotations

import multiprocessing
import os
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks import theirs as reference
from benchmarks.inputs import processor_folder, text_talks, write_talks
from benchmarks.row import Figure, Goal, Job, Rival, Row

PACK_SIZE = 8192
WORKERS = 2
LOOKS = 100
"""How often memory is read during an epoch."""

ROW = Row(
    title="memory over an epoch",
    what=(
        "Memory of the main process and two workers together over an epoch of 200,000 conversations of text, packs of "
        "8192: how much more it is in the last tenth of the epoch than in the second. Memory that processes share "
        "counts once; pages of mapped files do not count."
    ),
    figures=(
        Figure(name="growth", what="growth, second tenth to last", unit="%", goal=Goal(at_most=2), compared=False),
        Figure(name="last", what="in the last tenth", unit="MB"),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    repeats=1,
)


def prepare(job: Job) -> None:
    """The conversations."""
    write_talks(job.inputs, text_talks(job.pick(200_000, 600)))


def ours(job: Job) -> dict[str, float]:
    """The loader, at its defaults."""
    from lading import Loader

    options = {"pack_size": PACK_SIZE, "num_workers": WORKERS}
    return _watched(Loader(job.inputs / "meta.json", str(processor_folder(job)), **options))


def theirs(job: Job) -> dict[str, float]:
    """Its loader, without a dense mask."""
    options: dict[str, Any] = {"pack_size": PACK_SIZE, "workers": WORKERS, "three_way": False}
    make = reference.loader_maker(
        job.inputs / "meta.json", processor_folder(job), attention="flash_attention_2", **options
    )
    return _watched(make())


def _watched(loader: Any) -> dict[str, float]:
    seen = _over(loader, len(loader))
    tenth = max(1, len(seen) // 10)
    second, last = statistics.mean(seen[tenth : 2 * tenth]), statistics.mean(seen[-tenth:])
    return {"growth": 100 * (last / second - 1), "last": last}


def _over(batches: Iterable[object], length: int) -> list[float]:
    every = max(1, length // LOOKS)
    return [_memory() for number, _ in enumerate(batches) if number % every == 0]


def _memory() -> float:
    """Private and shared memory of this process and its workers, in MB, what is shared counted once."""
    processes = [os.getpid(), *(child.pid for child in multiprocessing.active_children())]
    return sum(_share_of(process) for process in processes if process)


def _share_of(process: int) -> float:
    rollup = Path(f"/proc/{process}/smaps_rollup")
    lines = [line.split() for line in rollup.read_text(encoding="ascii").splitlines()] if rollup.exists() else []
    return sum(int(words[1]) * 1024 / 1e6 for words in lines if words[0] in ("Pss_Anon:", "Pss_Shmem:"))
