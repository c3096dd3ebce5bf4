"""Walk a corpus in chunks and write down what each sample costs, or why it cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple

import numpy as np
from numpy.typing import NDArray

from lading.records import COLUMNS, Dropped, Length, LengthTable, column_type

Measure = Callable[[Sequence[int]], Sequence[Length | Dropped]]
"""Sample numbers → what each costs, or why it is left out."""

CHUNK = 256


def count_lengths(
    *,
    samples: int,
    sources: Sequence[str],
    source: NDArray[np.int32],
    measure: Measure,
    progress: Callable[[int], None] = lambda done: None,
) -> LengthTable:
    """The length table of `samples` samples; `source[i]` is the number of sample i's source.

    >>> table = count_lengths(samples=2, sources=["a"], source=np.zeros(2, np.int32), measure=lambda many: [
    ...     Length(tokens=5 + i, label_tokens=1) for i in many])
    >>> table.tokens.tolist()
    [5, 6]
    """
    columns = {name: np.zeros(samples, dtype=column_type(name)) for name in COLUMNS}
    dropped: list[Dropped] = []
    for chunk in _chunks(samples):
        for index, answer in zip(chunk, measure(chunk), strict=True):
            if isinstance(answer, Dropped):
                dropped.append(answer)
                continue
            for column, number in zip(columns.values(), astuple(answer), strict=True):
                column[index] = number
        progress(len(chunk))
    return LengthTable.of(sources=sources, source=source, dropped=dropped, **columns)


def _chunks(samples: int) -> Iterator[range]:
    return (range(start, min(start + CHUNK, samples)) for start in range(0, samples, CHUNK))
