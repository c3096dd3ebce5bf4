"""Which samples are looked at: a few of a corpus, evenly spread, each still under its own file and line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lading.errors import ConfigError
from lading.sources import Corpus


def spread(corpus: Corpus, limit: int) -> list[int]:
    """The numbers of at most `limit` samples, the first and the last among them."""
    if limit < 1:
        raise ConfigError(found=f"limit {limit}", wanted="at least one sample", where="verify")
    return [int(place) for place in np.linspace(0, len(corpus) - 1, min(limit, len(corpus)))]


def part_of(corpus: Corpus, indices: Sequence[int]) -> Corpus:
    """A corpus of these samples alone, in their order; numbers begin at 0 again, places in files stay."""
    rows: list[list[int]] = [[] for _ in corpus.sources]
    for index in sorted(indices):
        number, row = corpus.locate(index)
        rows[number].append(row)
    return Corpus.of(
        [
            replace(source, chosen=np.array(chosen, dtype=np.int64))
            for source, chosen in zip(corpus.sources, rows, strict=True)
        ]
    )
