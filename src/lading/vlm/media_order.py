"""Packs whose neighbours are alike in visual tokens, and an order of them that keeps it so.

The ranks of a step work side by side, and the slowest decides. With packs sorted by their visual tokens, the packs of
a step (neighbours, as `DistributedSampler(shuffle=False)` deals them) cost about the same in the vision tower.
Shuffling single packs would undo that; shuffling blocks of as many packs as there are ranks does not:

    packs by visual tokens    9 8 | 7 7 | 4 3 | 1 0 | 0          two ranks
    an epoch's order          3 4 | 8 9 | 1 0 | 7 7 | 0          blocks shuffled, then each within itself
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.errors import ConfigError
from lading.plan.costs import pack_sums
from lading.plan.knapsack.first_fit import first_fit


@dataclass(frozen=True, kw_only=True, slots=True)
class BinPlan:
    """Law: every sample with a length is in one bin, in `too_long`, or, where packs are capped, in `beyond`."""

    bins: list[list[int]]
    too_long: list[int]
    """Samples over the pack size that were to be left out."""
    beyond: list[int]
    """Samples of the packs after the last one asked for."""


def alike_bins(lengths: Sequence[int], capacity: int, visual_tokens: Sequence[int]) -> list[list[int]]:
    """First fit, longest first; then bins in order of their visual tokens, most first, and of their length.

    >>> alike_bins([5, 5, 5, 5], 10, [0, 4, 0, 3])
    [[0, 1], [2, 3]]
    """
    sizes, visual = _integers(lengths, "lengths"), _integers(visual_tokens, "visual_tokens")
    _check(sizes, capacity, visual)
    found = first_fit(sizes, capacity)
    order = np.lexsort(
        (-pack_sums(sizes, found.members, found.starts), -pack_sums(visual, found.members, found.starts))
    )
    return [found.members[found.starts[bin_] : found.starts[bin_ + 1]].tolist() for bin_ in order.tolist()]


def plan_bins(
    lengths: Sequence[int],
    visual_tokens: Sequence[int],
    *,
    pack_size: int,
    ratio: float = 1.0,
    drop_long: bool = False,
    max_packs: int | None = None,
    balance: bool = True,
) -> BinPlan:
    """Bins filled up to `ratio` of the pack size. A sample beyond that, which nothing fits beside, gets its own bin.
    A sample of length 0 cannot be used, and is in none.

    >>> plan_bins([9, 12, 3, 4], [0, 0, 0, 0], pack_size=10, ratio=0.8, drop_long=True).bins
    [[0], [2, 3]]
    """
    _check_options(pack_size, ratio, max_packs)
    capacity = max(1, int(pack_size * ratio))
    sizes, visual = _integers(lengths, "lengths"), _integers(visual_tokens, "visual_tokens")
    _check_pairs(sizes, visual)
    too_long = np.flatnonzero(sizes > pack_size) if drop_long else np.zeros(0, dtype=np.int64)
    used = np.setdiff1d(np.flatnonzero(sizes), too_long)
    # What is over the capacity fills a bin by itself: for the knapsack it is exactly as large as a bin.
    fitted = np.minimum(sizes[used], capacity)
    weights = visual[used] if balance else np.zeros_like(fitted)
    bins = [used[members].tolist() for members in alike_bins(fitted.tolist(), capacity, weights.tolist())]
    kept = bins if max_packs is None else bins[:max_packs]
    beyond = sorted(sample for members in bins[len(kept) :] for sample in members)
    return BinPlan(bins=kept, too_long=too_long.tolist(), beyond=beyond)


def block_order(packs: int, *, world_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """An order of packs, neighbours of which stay together in blocks of `world_size`. A short block comes last.

    >>> block_order(5, world_size=2, seed=0, epoch=1).tolist()
    [1, 0, 3, 2, 4]
    """
    if world_size < 1:
        raise ConfigError(found=f"world size {world_size}", wanted="at least one rank", where="block_order")
    if seed < 0 or epoch < 0:
        raise ConfigError(found=f"seed {seed}, epoch {epoch}", wanted="numbers from 0 up", where="block_order")
    random = np.random.default_rng([seed, epoch])
    full = packs // world_size * world_size
    blocks = random.permutation(np.arange(full, dtype=np.int64).reshape(-1, world_size), axis=0)
    blocks = random.permuted(blocks, axis=1)
    return np.concatenate([blocks.reshape(-1), random.permutation(np.arange(full, packs, dtype=np.int64))])


def _integers(values: Sequence[int], name: str) -> NDArray[np.int64]:
    numbers = np.asarray(values, dtype=np.int64)
    if numbers.ndim != 1 or (len(numbers) and int(numbers.min()) < 0):
        raise ConfigError(found=f"{name} with a shape {numbers.shape} or a number below 0", wanted="numbers from 0 up")
    return numbers


def _check(lengths: NDArray[np.int64], capacity: int, visual: NDArray[np.int64]) -> None:
    _check_pairs(lengths, visual)
    if capacity < 1:
        raise ConfigError(found=f"max_length {capacity}", wanted="a positive number of tokens")
    if len(lengths) and not 1 <= int(lengths.min()) <= int(lengths.max()) <= capacity:
        wrong = int(np.flatnonzero((lengths < 1) | (lengths > capacity))[0])
        raise ConfigError(
            found=f"sample {wrong} of {int(lengths[wrong])} tokens",
            wanted=f"1 to {capacity} tokens, as many as a pack holds",
            consequence="it could be in no pack",
        )


def _check_pairs(lengths: NDArray[np.int64], visual: NDArray[np.int64]) -> None:
    if len(lengths) != len(visual):
        raise ConfigError(
            found=f"{len(lengths)} lengths and {len(visual)} visual_tokens", wanted="one of each a sample"
        )


def _check_options(pack_size: int, ratio: float, max_packs: int | None) -> None:
    if pack_size < 1:
        raise ConfigError(found=f"pack_size {pack_size}", wanted="a positive number of tokens")
    if not 0 < ratio <= 1:
        raise ConfigError(found=f"packing_ratio {ratio}", wanted="a share of the pack size, above 0 and at most 1")
    if max_packs is not None and max_packs < 1:
        raise ConfigError(found=f"max_packs {max_packs}", wanted="1 or more, or None")
