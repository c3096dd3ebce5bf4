"""A corpus → findings: rows in parallel, then what only shows in the corpus as a whole."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.doctor import findings as findings_module
from lading.doctor.duplicates import SHOWN_FILES, same_media, same_samples
from lading.doctor.findings import Findings
from lading.doctor.kinds import KINDS, NUMBERS, Problem
from lading.doctor.opening import ExaminedCorpus, open_for_examination
from lading.doctor.rows import CheckedRows, RowChecker
from lading.encode.processor_facts import ProcessorFacts, load_processor, read_processor
from lading.errors import ConfigError
from lading.records import Finding
from lading.workers.pool import ProcessPool

CHUNK = 64
"""Rows that are checked together."""
MEDIA_SECONDS = 20.0
"""Seconds that a medium may take."""


def examine(
    meta: str | os.PathLike[str] | ExaminedCorpus,
    processor: str | os.PathLike[str] | ProcessorFacts | Any = None,
    *,
    family: str | None = None,
    pack_size: int | None = None,
    deep: bool = False,
    workers: int = 0,
    media_seconds: float | None = MEDIA_SECONDS,
    progress: Callable[[int], None] = lambda done: None,
) -> Findings:
    """Look at every row of a corpus and at every medium it names; neither is changed.

    With a `processor` (a folder, a hub id, `toy:NAME`, an object, or one that was read) what only it knows is checked
    too, and with a `pack_size` the length; `deep` decodes every medium. `progress` is called with the number of rows
    that were just done.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lines = Path(folder) / "talks.jsonl"
    ...     written = lines.write_text('{"messages": [{"role": "user", "content": "Anyone?"}]}')
    ...     found = examine(lines)
    >>> dict(found.counts)
    {'no_assistant_turn': 1}
    """
    began = time.monotonic()
    facts: ProcessorFacts | None
    if processor is None or isinstance(processor, ProcessorFacts):
        facts = processor
    else:
        facts = read_processor(load_processor(processor), family)
    if pack_size is not None and (facts is None or pack_size < 1):
        raise ConfigError(
            found=f"pack size {pack_size}" + ("" if facts else " without a processor"),
            wanted="a positive number of tokens, and the processor that counts them",
            where="doctor",
        )
    examined = meta if isinstance(meta, ExaminedCorpus) else open_for_examination(Path(meta))
    tally = _Tally(examined)
    checker = RowChecker(examined.rows, examined.layouts, facts, pack_size, deep, media_seconds)
    total = len(examined)
    chunks = (range(start, min(total, start + CHUNK)) for start in range(0, total, CHUNK))
    with ProcessPool(checker, workers) as pool:
        for checked in pool.map(chunks, math.ceil(total / CHUNK)):
            tally.add(checked)
            progress(len(checked.rows))
    tally.compare(examined.layouts)
    return Findings(
        meta=examined.meta,
        examined=examined,
        **tally.results(),
        processor=None if facts is None else facts.family.name,
        pack_size=pack_size,
        deep=deep,
        seconds=time.monotonic() - began,
        lost_sources=examined.lost_sources,
    )


class _Tally:
    """The findings so far. Law: what it holds of a row is a few integers, and of a kind at most `KEPT` problems."""

    def __init__(self, examined: ExaminedCorpus) -> None:
        rows = len(examined)
        self.examined = examined
        self.marks = np.zeros(rows, dtype=np.uint64)
        self.samples = np.zeros(rows, dtype=np.uint64)
        self.media: list[NDArray[np.void]] = [np.zeros(0, dtype=SHOWN_FILES)]
        self.shown = 0
        self.counts = Counter(finding.kind for finding in examined.findings)
        self.kept: dict[str, list[tuple[int, Problem]]] = {name: [] for name in KINDS}

    def add(self, checked: CheckedRows) -> None:
        """Add what was found in a chunk."""
        self.samples[checked.rows.start : checked.rows.stop] = checked.samples
        self.media.append(checked.media)
        self.shown += checked.shown
        for row, problem in checked.problems:
            self._note(row, problem)

    def compare(self, layouts: tuple[Layout, ...]) -> None:
        """Look for what stands twice. A row that shows several media of others is reported by the first."""
        media = np.concatenate(self.media)
        self.media.clear()
        rows = self.examined.rows
        for row, problem in chain(same_samples(rows, self.samples), same_media(rows, layouts, media)):
            if not int(self.marks[row]) >> NUMBERS[problem.kind] & 1:
                self._note(row, problem)

    def _note(self, row: int, problem: Problem) -> None:
        self.counts[problem.kind] += 1
        self.marks[row] |= np.uint64(1 << NUMBERS[problem.kind])
        if len(self.kept[problem.kind]) < findings_module.KEPT:
            self.kept[problem.kind].append((row, problem))

    def results(self) -> dict[str, Any]:
        """The findings in the order of the corpus, and the numbers."""
        noted = sorted(chain.from_iterable(self.kept.values()), key=lambda entry: (entry[0], NUMBERS[entry[1].kind]))
        rows = self.examined.rows
        ends = [0, *rows.ends]
        return {
            "findings": (*self.examined.findings, *(self._finding(row, problem) for row, problem in noted)),
            "counts": {name: self.counts[name] for name in KINDS if self.counts[name]},
            "marks": {
                source.config.name: self.marks[start:stop]
                for source, start, stop in zip(rows.sources, ends[:-1], ends[1:], strict=True)
            },
            "samples": len(rows),
            "media": self.shown,
        }

    def _finding(self, row: int, problem: Problem) -> Finding:
        rows = self.examined.rows
        number, place = rows.locate(row)
        return Finding(
            kind=problem.kind,
            severity=KINDS[problem.kind].severity,
            where=rows.sources[number].file.where(place),
            detail=problem.detail,
            key=self.examined.key(row),
            source=rows.sources[number].config.name,
            row=place,
        )
