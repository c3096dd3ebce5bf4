"""Processes that count for this one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lading.lengths.rows import Counted
from lading.workers import pool as helpers
from lading.workers.child import USUAL, Start

if TYPE_CHECKING:
    from lading.samples.samples import Samples

Chunk = tuple[list[int], list[int]]
"""Rows of a file, and the numbers of their samples."""


@dataclass(frozen=True, slots=True)
class CountChunk:
    """The job: one chunk, counted."""

    samples: Samples

    def __call__(self, chunk: Chunk) -> Counted:
        """Count it."""
        rows, indices = chunk
        return Counted.of(rows, self.samples.measure(indices))


class Helpers(helpers.Helpers[Chunk, Counted]):
    """So many processes that count."""

    def __init__(self, samples: Samples, workers: int, how: Start = USUAL) -> None:
        super().__init__(CountChunk(samples), workers, how)

    def count(self, chunks: Iterable[Chunk], number: int) -> Iterator[Counted]:
        """So many chunks, counted, in their order, whoever counts them."""
        return self.each(chunks, number)
