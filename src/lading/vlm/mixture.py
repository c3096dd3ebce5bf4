"""A meta file → examples: all at once with an account of it, or lazily."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from lading.errors import CorpusError
from lading.loader.ranks import find_ranks
from lading.records import Dropped
from lading.samples.layouts import source_layouts
from lading.samples.skip import SkipPolicy
from lading.sources import open_corpus
from lading.vlm.example_stats import Timing, collect
from lading.vlm.examples import CorpusReader, Example, Examples
from lading.vlm.shares import largest_share, share


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Loaded:
    """All examples of a mixture. Law: those in `examples` and those in `dropped` are all there were."""

    examples: list[Example]
    timings: list[Timing]
    dropped: list[Dropped]
    seconds: float

    @property
    def stats(self) -> dict[str, int]:
        """Totals over all data sets."""
        totals = Counter[str]()
        for timing in self.timings:
            totals.update(timing.stats)
        return {**collect(()), **totals, "n_samples": len(self.examples), "n_dropped": len(self.dropped)}


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


def open_mixture(
    path: str | Path,
    names: Sequence[str] | None,
    rank: int,
    world_size: int,
    media_roots: Sequence[str | Path] | None = None,
) -> Mixture:
    """Open a meta file for one rank. Of its rows, the first few of each data set are looked at."""
    corpus = open_corpus(path, names, media_roots=media_roots)
    if len(corpus) == 0:
        raise CorpusError(found=f"no rows in {corpus!r}", wanted="at least one to train on", where=str(path))
    numbers = share(corpus.ends, rank, world_size)
    edges = np.searchsorted(numbers, (0, *corpus.ends)).tolist()
    names = [source.config.name for source in corpus.sources]
    reader = CorpusReader(corpus=corpus, layouts=source_layouts(corpus))
    return Mixture(
        rank=rank if world_size > 1 else None,
        examples=Examples(rows=corpus, read=reader, numbers=numbers if world_size > 1 else None),
        places={name: range(*edge) for name, edge in zip(names, pairwise(edges), strict=True)},
        largest=largest_share(corpus.ends, world_size),
    )


def load(mixture: Mixture, *, strict: bool) -> Loaded:
    """Read every example of a mixture, data set by data set. With `strict`, the first bad one is raised."""
    policy = SkipPolicy(strict=strict)
    examples: list[Example] = []
    timings: list[Timing] = []
    dropped: list[Dropped] = []
    began = time.perf_counter()
    for name, places in mixture.places.items():
        started = time.perf_counter()
        read = list(_read(mixture.examples, places, policy))
        good = [item for item in read if not isinstance(item, Dropped)]
        dropped += [item for item in read if isinstance(item, Dropped)]
        timings.append(Timing(name=name, seconds=time.perf_counter() - started, samples=len(good), stats=collect(good)))
        examples += good
    return Loaded(examples=examples, timings=timings, dropped=dropped, seconds=time.perf_counter() - began)


def _read(examples: Examples, places: range, policy: SkipPolicy) -> Iterable[Example | Dropped]:
    for place in places:
        yield policy.attempt(examples.key(place), lambda place=place: examples[place])  # type: ignore[misc]  # mypy cannot infer a lambda's default
