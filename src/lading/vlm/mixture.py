"""A meta file → examples: each rank's share of every data set, all at once with an account of it, or lazily.

A rank gets, of every data set, after its ratio, every `world_size`-th sample. No sample is cut off to make the shares
equal: of each data set they differ by at most one, and rank 0 never has the fewest. Ranks stay in step by taking as
many steps as the largest share needs, which every rank can work out for itself (`largest_share`), without asking the
others; a rank that runs out begins its own share again.

    sample   0 1 2 | 3 4 5 6        two data sets, ends (3, 7), two ranks
    rank 0   0   2 | 3   5
    rank 1     1   |   4   6
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lading.conversation.keys import Reading
from lading.errors import ConfigError, CorpusError
from lading.loader.ranks import find_ranks
from lading.records import Dropped
from lading.samples.layouts import source_layouts
from lading.samples.skip import SkipPolicy
from lading.sources import open_corpus
from lading.sources.corpus import choose
from lading.vlm.estimate import Timing, collect_stats, summary
from lading.vlm.examples import CorpusReader, Example, Examples

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Mixture:
    """A corpus seen by one rank."""

    examples: Examples
    rank: int | None
    """`None` where one rank sees everything."""
    places: Mapping[str, range]
    """Where the samples of each data set stand among `examples`."""
    largest: int
    """Samples in the largest share: what every rank takes its steps by."""


def open_mixture(
    path: str | Path,
    names: Sequence[str] | None,
    rank: int,
    world_size: int,
    media_roots: Sequence[str | Path] | None = None,
    reading: Reading | None = None,
) -> Mixture:
    """Open a meta file for one rank. Of its rows, the first few of each data set are looked at."""
    corpus = open_corpus(path, names, media_roots=media_roots)
    if len(corpus) == 0:
        raise CorpusError(found=f"no rows in {corpus!r}", wanted="at least one to train on", where=str(path))
    numbers = share(corpus.ends, rank, world_size)
    edges = np.searchsorted(numbers, (0, *corpus.ends)).tolist()
    names = [source.config.name for source in corpus.sources]
    reader = CorpusReader(corpus=corpus, layouts=source_layouts(corpus, reading or Reading()))
    return Mixture(
        rank=rank if world_size > 1 else None,
        examples=Examples(rows=corpus, read=reader, numbers=numbers if world_size > 1 else None),
        places={name: range(*edge) for name, edge in zip(names, pairwise(edges), strict=True)},
        largest=largest_share(corpus.ends, world_size),
    )


def load(mixture: Mixture, *, strict: bool) -> tuple[list[Example], dict[str, int]]:
    """(examples, statistics) of a mixture, data set by data set. With `strict`, the first bad row is raised; without,
    it is logged, and counted as `n_dropped`.
    """
    policy = SkipPolicy(strict=strict)
    examples: list[Example] = []
    timings: list[Timing] = []
    totals = Counter[str](n_dropped=0)
    began = time.perf_counter()
    for name, places in mixture.places.items():
        started = time.perf_counter()
        good: list[Example] = []
        for place in places:
            item = policy.attempt(mixture.examples.key(place), partial(mixture.examples.__getitem__, place))
            if isinstance(item, Dropped):
                logger.warning("left out %s: %s", item.key, item.detail)
                totals["n_dropped"] += 1
            else:
                good.append(item)
        stats = collect_stats(good)
        totals.update(stats)
        timings.append(Timing(name=name, seconds=time.perf_counter() - started, samples=len(good), stats=stats))
        examples += good
    log_summary(timings, time.perf_counter() - began, len(examples), mixture.rank)
    return examples, {**totals, "n_samples": len(examples), "n_samples_largest_share": mixture.largest}


def log_summary(timings: Sequence[Timing], wall_time: float, total_samples: int, rank: int | None = None) -> None:
    """Log how long each data set took and what is in it."""
    logger.info("%s", summary(timings, wall_time, total_samples, rank))


def own_share(shard: bool, rank: int | None, world_size: int | None) -> tuple[int, int]:
    """(rank, world size) to read for: what is not given is asked of torch.distributed; all of it without `shard`.

    >>> own_share(True, 1, 4), own_share(False, 1, 4)
    ((1, 4), (0, 1))
    """
    if not shard:
        return 0, 1
    if rank is not None and world_size is not None:
        return rank, world_size
    own = find_ranks()
    return own.rank if rank is None else rank, own.world_size if world_size is None else world_size


def share(ends: Sequence[int], rank: int, world_size: int) -> NDArray[np.int64]:
    """The sample numbers of one rank; `ends` are one past the last sample of each data set (`Corpus.ends`).

    >>> share((3, 7), rank=0, world_size=2).tolist(), share((3, 7), rank=1, world_size=2).tolist()
    ([0, 2, 3, 5], [1, 4, 6])
    """
    if world_size < 1 or not 0 <= rank < world_size:
        raise ConfigError(
            found=f"rank {rank} of {world_size}",
            wanted="a world size of 1 or more, and a rank below it",
            consequence="samples would be lost or repeated; nothing was read",
            where="shard",
        )
    blocks = [np.arange(start + rank, stop, world_size, dtype=np.int64) for start, stop in pairwise((0, *ends))]
    return np.concatenate(blocks) if blocks else np.empty(0, dtype=np.int64)


def largest_share(ends: Sequence[int], world_size: int) -> int:
    """How many samples the largest share has: what every rank takes its steps by.

    >>> largest_share((3, 7), world_size=2)
    4
    """
    return len(share(ends, 0, world_size))


def rows_of_rank(rows: int, ratio: float, rank: int, world_size: int) -> NDArray[np.int64]:
    """The row numbers of one file that a rank reads: the ratio first, then every `world_size`-th of what it chose.

    >>> rows_of_rank(3, 2.0, rank=1, world_size=2).tolist()
    [1, 0, 2]
    """
    if not ratio >= 0:
        raise ConfigError(found=f"sample_ratio {ratio}", wanted="0 or more", where="shard")
    chosen = choose(rows, ratio)
    mine = share((rows if chosen is None else len(chosen),), rank, world_size)
    return mine if chosen is None else chosen[mine]
