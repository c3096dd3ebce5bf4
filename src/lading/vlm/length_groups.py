"""Samples in order of their length, the same way on every rank, beginning elsewhere in every epoch.

Each rank sorts its own samples, longest first. Place N then holds samples of like length on all ranks, so little is
padded and nobody waits long. Traced on shares of five and four samples, batches of two, five places a rank:

    rank 0, sorted    9 7 5 3 1                    rank 1, sorted        8 6 4 2
    stretched         9 7 5 3 1                    to five places        8 8 6 4 2     one repeat, named
    from place 3 on   3 1 | 9 7 | 5                                      4 2 | 8 8 | 6

A share that is short is stretched, its repeats spread evenly, so that places stay alike in length up to the end; no
sample is left out to make the numbers equal. An epoch begins at a place from which whole batches reach the end, so that
no batch holds the shortest and the longest samples together.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lading.errors import ConfigError


def length_order(lengths: Sequence[int], max_length: int | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(sample numbers, longest first; those over `max_length`). Samples of one length keep their order.

    >>> order, too_long = length_order([3, 9, 5, 12], max_length=10)
    >>> order.tolist(), too_long.tolist()
    ([1, 2, 0], [3])
    """
    if max_length is not None and max_length < 1:
        raise ConfigError(found=f"max_length {max_length}", wanted="1 or more, or None")
    numbers = np.asarray(lengths, dtype=np.int64)
    order = np.argsort(-numbers, kind="stable").astype(np.int64)
    if max_length is None:
        return order, order[:0]
    fits = numbers[order] <= max_length
    return order[fits], np.sort(order[~fits])


def stretch(order: NDArray[np.int64], places: int) -> NDArray[np.int64]:
    """The order on more places: every sample at least once, repeats spread evenly.

    >>> stretch(np.array([4, 2, 0]), 5).tolist()
    [4, 4, 2, 2, 0]
    """
    if places < len(order) or (places and not len(order)):
        raise ConfigError(
            found=f"{places} places for {len(order)} samples", wanted="at least one sample, none left out"
        )
    return order[np.arange(places) * len(order) // max(1, places)]


def rotation(places: int, *, batch_size: int, seed: int, epoch: int) -> int:
    """Where an epoch begins: a function of its arguments alone, so the same on every rank.

    >>> sorted({rotation(5, batch_size=2, seed=0, epoch=epoch) for epoch in range(20)})
    [1, 3, 5]
    """
    if seed < 0 or epoch < 0:
        raise ConfigError(found=f"seed {seed}, epoch {epoch}", wanted="numbers from 0 up")
    batches = places // batch_size
    return places - batch_size * int(np.random.default_rng([seed, epoch]).integers(batches + 1)) if batches else 0


def grouped_order(
    order: NDArray[np.int64], *, places: int, batch_size: int, seed: int, epoch: int
) -> NDArray[np.int64]:
    """One epoch of a rank: its order, stretched to as many places as every rank has, from the epoch's place on.

    >>> grouped_order(np.array([3, 1, 0, 2]), places=4, batch_size=1, seed=0, epoch=0).tolist()
    [3, 1, 0, 2]
    """
    return np.roll(stretch(order, places), -rotation(places, batch_size=batch_size, seed=seed, epoch=epoch))
