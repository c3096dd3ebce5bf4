"""What every sample of a data set costs, and packs of them that cost alike, in an order that keeps it so.

Costs are counted from text and the headers of media, wherever the data set can tell. The ranks of a step work side by
side, and the slowest decides. With packs sorted by their visual tokens, the packs of a step (neighbours, as
`DistributedSampler(shuffle=False)` deals them) cost about the same in the vision tower. Shuffling single packs would
undo that; shuffling blocks of as many packs as there are ranks does not:

    packs by visual tokens    9 8 | 7 7 | 4 3 | 1 0 | 0          two ranks
    an epoch's order          3 4 | 8 9 | 1 0 | 7 7 | 0          blocks shuffled, then each within itself
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch.utils.data import Subset

from lading.encode.encoder import Encoder
from lading.encode.tokeniser import Sized, TokenisedSample
from lading.errors import ConfigError
from lading.ledger import too_long
from lading.plan.knapsack.first_fit import first_fit
from lading.records import Conversation, Dropped, Encoded, SampleKey
from lading.samples.samples import Samples
from lading.samples.skip import SkipPolicy
from lading.vlm.datasets import PreTokenizedDatasetWrapper
from lading.vlm.replacement import Replacing, key_of

CHUNK = 256


@dataclass(frozen=True, kw_only=True, slots=True)
class Cost:
    """What a sample takes: all its tokens, those of its media, and how many are left after the shift."""

    tokens: int
    media: int
    shifted: int
    exact: bool = True


class _Chosen:
    """Some samples of a data set that tokenises, under their places in the choice."""

    def __init__(self, dataset: Tokenising, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices
        self.encoder: Encoder = dataset.encoder
        self.max_length: int | None = dataset.max_length

    def __len__(self) -> int:
        return len(self.indices)

    def key(self, place: int) -> SampleKey:
        return self.dataset.key(int(self.indices[place]))

    def conversation(self, index: int) -> Conversation:
        return self.dataset.conversation(int(self.indices[index]))

    def encoded(self, index: int) -> Encoded:
        return self.dataset.encoded(int(self.indices[index]))


Tokenising = PreTokenizedDatasetWrapper | _Chosen


def tokenising(dataset: Any) -> Tokenising | None:
    """The data set that tokenises, sample for sample: itself, or what is under a `Subset` or a wrapper that replaces.

    Nobody knows what a wrapper of somebody else's does to its samples, so that one is not looked into: `None`. Nor is
    one that is derived from these.

    >>> tokenising(["a", "b"]) is None
    True
    """
    if isinstance(dataset, PreTokenizedDatasetWrapper):
        return dataset
    own = type(dataset)
    if isinstance(dataset, Replacing) and (own.fetch, own.__getitem__) == (Replacing.fetch, Replacing.__getitem__):
        return tokenising(dataset.dataset)
    if own is Subset:
        inner = tokenising(dataset.dataset)
        return None if inner is None else _Chosen(inner, dataset.indices)
    return None


def name_of(dataset: Any, place: int) -> SampleKey:
    """What a sample is called in logs and ledgers: its data set's own name for it, under its place.

    >>> str(name_of(["a", "b"], 1))
    'list#1 (list[1])'
    """
    return replace(key_of(tokenising(dataset) or dataset, place), index=place)


def exact_costs(dataset: Any) -> list[Cost | Dropped] | None:
    """The cost of each sample, or why it cannot be used; `None` where the data set cannot tell without pixels."""
    tokenise: Callable[[Sequence[int]], list[TokenisedSample | Dropped]]
    if isinstance(dataset, Samples):
        tokenise, most = dataset.tokenised, None
    elif (own := tokenising(dataset)) is not None:
        tokenise, most = partial(_tokenised, own), own.max_length
    else:
        return None
    places = range(len(dataset))
    chunks = (tokenise(places[start : start + CHUNK]) for start in range(0, len(places), CHUNK))
    return [_cost(tokenised, most) for chunk in chunks for tokenised in chunk]


def _tokenised(dataset: Tokenising, places: Sequence[int]) -> list[TokenisedSample | Dropped]:
    def sized(key: SampleKey) -> Sized:
        return dataset.encoder.sized(dataset.conversation(key.index))

    return SkipPolicy().attempt_each([name_of(dataset, place) for place in places], sized, dataset.encoder.tokenise)


def _cost(tokenised: TokenisedSample | Dropped, most: int | None) -> Cost | Dropped:
    if isinstance(tokenised, Dropped):
        return tokenised
    tokens = len(tokenised.ids)
    if most is not None and tokens > most:
        return too_long(tokenised.conversation.key, tokens, most)
    # The shift drops the last token, unless a medium would lose it.
    whole = bool(tokenised.media) and tokenised.media[-1].stop == tokens
    media = sum(sum(span.footprint.runs) for span in tokenised.media)
    return Cost(tokens=tokens, media=media, shifted=tokens if whole else tokens - 1)


def count_exactly(dataset: Any, examples: Any, processor: Any) -> list[Cost | Dropped]:
    """The costs of a data set that can tell them, or of examples for a processor; without both, an error."""
    counted = exact_costs(dataset)
    if counted is None and processor is not None:
        counted = exact_costs(PreTokenizedDatasetWrapper(examples, processor))
    if counted is None:
        raise ConfigError(
            found=f"exact_lengths=True and a {type(dataset).__name__}",
            wanted="a PreTokenizedDatasetWrapper, or examples and a processor",
        )
    return counted


def described(dropped: Sequence[Dropped], samples: int) -> list[str]:
    """Lines for a log: how many samples are left out, and each by name.

    >>> described([too_long(name_of(["a"], 0), 12, 8)], samples=3)
    ['left out 1 of 3 samples:', 'list#0 (list[0]): found 12 tokens; wanted at most the pack size, 8']
    """
    names = [f"{entry.key}: {entry.detail}" for entry in dropped]
    return [f"left out {len(dropped)} of {samples} samples:", *names] if dropped else []


@dataclass(frozen=True, kw_only=True, slots=True)
class BinPlan:
    """Law: every sample with a length is in one bin, in `too_long`, or, where packs are capped, in `beyond`."""

    bins: list[list[int]]
    too_long: list[int]
    """Samples over the pack size that were to be left out."""
    beyond: list[int]
    """Samples of the packs after the last one asked for."""


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
    if pack_size < 1:
        raise ConfigError(found=f"pack_size {pack_size}", wanted="a positive number of tokens")
    if not 0 < ratio <= 1:
        raise ConfigError(found=f"packing_ratio {ratio}", wanted="a share of the pack size, above 0 and at most 1")
    if max_packs is not None and max_packs < 1:
        raise ConfigError(found=f"max_packs {max_packs}", wanted="1 or more, or None")
    capacity = max(1, int(pack_size * ratio))
    sizes, visual = _checked_numbers(lengths, visual_tokens)
    over = np.flatnonzero(sizes > pack_size) if drop_long else np.zeros(0, dtype=np.int64)
    used = np.setdiff1d(np.flatnonzero(sizes), over)
    # What is over the capacity fills a bin by itself: for the knapsack it is exactly as large as a bin.
    fitted = np.minimum(sizes[used], capacity)
    weights = visual[used] if balance else np.zeros_like(fitted)
    bins = [
        used[members].tolist() for members in greedy_knapsack_vt_balanced(fitted.tolist(), capacity, weights.tolist())
    ]
    kept = bins if max_packs is None else bins[:max_packs]
    beyond = sorted(sample for members in bins[len(kept) :] for sample in members)
    return BinPlan(bins=kept, too_long=over.tolist(), beyond=beyond)


def greedy_knapsack_vt_balanced(
    lengths: Sequence[int], max_length: int, visual_tokens: Sequence[int]
) -> list[list[int]]:
    """First fit, longest first; then bins with like visual tokens beside each other, most first, and the fuller first.

    >>> greedy_knapsack_vt_balanced([6, 5, 4, 3], 10, [0, 5, 0, 0])
    [[1, 3], [0, 2]]
    """
    sizes, visual = _checked_numbers(lengths, visual_tokens)
    if max_length < 1:
        raise ConfigError(found=f"max_length {max_length}", wanted="a positive number of tokens")
    if len(wrong := np.flatnonzero((sizes < 1) | (sizes > max_length))):
        raise ConfigError(
            found=f"sample {wrong[0]} of {sizes[wrong[0]]} tokens",
            wanted=f"1 to {max_length} tokens, as many as a pack holds",
            consequence="it could be in no pack",
        )
    found = first_fit(sizes, max_length)
    order = np.lexsort(
        (-pack_sums(sizes, found.members, found.starts), -pack_sums(visual, found.members, found.starts))
    )
    return [found.members[found.starts[bin_] : found.starts[bin_ + 1]].tolist() for bin_ in order.tolist()]


def _checked_numbers(
    lengths: Sequence[int], visual_tokens: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    sizes, visual = np.asarray(lengths, dtype=np.int64), np.asarray(visual_tokens, dtype=np.int64)
    for name, numbers in (("lengths", sizes), ("visual_tokens", visual)):
        if numbers.ndim != 1 or (numbers < 0).any():
            found = f"{name} with a shape {numbers.shape} or a number below 0"
            raise ConfigError(found=found, wanted="numbers from 0 up")
    if len(sizes) != len(visual):
        raise ConfigError(found=f"{len(sizes)} lengths and {len(visual)} visual_tokens", wanted="one of each a sample")
    return sizes, visual


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


def pack_sums(values: NDArray[np.int64], members: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sum a per-sample value over each pack.

    >>> pack_sums(np.array([1, 2, 3]), np.array([2, 0, 1]), np.array([0, 1, 3])).tolist()
    [3, 3]
    """
    if len(starts) == 1:
        return values[:0]
    return np.add.reduceat(values[members], starts[:-1])
