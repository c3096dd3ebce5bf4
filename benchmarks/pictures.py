"""Ours over a corpus of pictures, as the rows of whole loaders measure it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.inputs import picture_talks, processor_folder, write_talks
from benchmarks.row import Job

PACK_SIZE = 8192
WORKERS = 2
PLAIN = "plain"


def write_corpus(job: Job) -> Path:
    """400 conversations about JPEGs; their meta file."""
    return write_talks(job.inputs / PLAIN, picture_talks(job.inputs / PLAIN, job.pick(400, 6)))


def our_rates(job: Job) -> dict[str, float]:
    """The loader at its defaults: every tensor read, as a model on the CPU reads it; then none, as before a GPU."""
    from lading import Loader, load_processor

    processor = load_processor(str(processor_folder(job)))

    def batches(*, read: bool) -> Iterator[list[int]]:
        # Lengths are counted anew for each: the one must not find what the other kept.
        meta = job.inputs / PLAIN / "meta.json"
        loader = Loader(meta, processor, pack_size=PACK_SIZE, num_workers=WORKERS, cache=False)
        return (_lengths(batch, read=read) for batch in loader)

    return {
        **rates(lambda: batches(read=True)),
        "rate_workers": rates(lambda: batches(read=False))["rate"],
    }


def _lengths(batch: Any, *, read: bool) -> list[int]:
    if read:
        dict(batch)
    return [document.tokens for row in batch.rows for document in row]


def rates(open_batches: Callable[[], Iterable[list[int]]]) -> dict[str, float]:
    """Tokens a second, from the first request to the last batch and from opening on."""
    begun = time.perf_counter()
    batches = open_batches()
    start = time.perf_counter()
    lengths = [length for batch in batches for length in batch]
    end = time.perf_counter()
    return {
        "rate": sum(lengths) / (end - start),
        "rate_from_start": sum(lengths) / (end - begun),
        "documents": len(lengths),
    }
