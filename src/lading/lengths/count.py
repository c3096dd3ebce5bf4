"""Walk a corpus in chunks and write down what each sample costs, or why it cannot be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from lading.records import Dropped, Length, LengthTable

Measure = Callable[[Sequence[int]], Sequence[Length | Dropped]]
"""Sample numbers → what each costs, or why it is left out."""

CHUNK = 256
COLUMNS = ("tokens", "label_tokens", "visual_tokens", "patches", "images", "videos", "audios")


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
    ...     Length(tokens=5 + i, label_tokens=1, visual_tokens=0, patches=0, images=0, videos=0, audios=0)
    ...     for i in many])
    >>> table.tokens.tolist()
    [5, 6]
    """
    columns = {name: np.zeros(samples, dtype=np.int32) for name in COLUMNS}
    dropped: list[Dropped] = []
    for chunk in _chunks(samples):
        for index, answer in zip(chunk, measure(chunk), strict=True):
            if isinstance(answer, Dropped):
                dropped.append(answer)
                continue
            columns["tokens"][index] = answer.tokens
            columns["label_tokens"][index] = answer.label_tokens
            columns["visual_tokens"][index] = answer.visual_tokens
            columns["patches"][index] = answer.patches
            columns["images"][index] = answer.images
            columns["videos"][index] = answer.videos
            columns["audios"][index] = answer.audios
        progress(len(chunk))
    return LengthTable(sources=tuple(sources), source=source, dropped=tuple(dropped), **columns)


def _chunks(samples: int) -> Iterator[range]:
    return (range(start, min(start + CHUNK, samples)) for start in range(0, samples, CHUNK))
