"""Orders on plain numbers: by length, in blocks that stay alike, the same wherever they are worked out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.plan.knapsack.first_fit import first_fit
from lading.plan.stats import lower_bound, straggler_factor
from lading.vlm.planning import block_order, plan_bins
from lading.vlm.planning import greedy_knapsack_vt_balanced as alike_bins
from lading.vlm.samplers import grouped_order, length_order, rotation, stretch

LENGTHS = st.lists(st.integers(1, 60), max_size=60)
SMALL = st.integers(0, 5)


@given(LENGTHS, st.none() | st.integers(1, 60))
def test_every_sample_is_in_the_order_or_over_the_limit(lengths: list[int], most: int | None) -> None:
    order, over = length_order(lengths, most)
    assert sorted([*order.tolist(), *over.tolist()]) == list(range(len(lengths)))
    assert all(lengths[index] > (most or 0) for index in over)
    sizes = [lengths[index] for index in order]
    assert sizes == sorted(sizes, reverse=True)


@given(st.integers(1, 40), st.integers(0, 40), st.integers(1, 7), SMALL, SMALL)
def test_an_epoch_has_every_sample_and_spreads_its_repeats(
    samples: int, more: int, batch_size: int, seed: int, epoch: int
) -> None:
    order = np.arange(samples)
    found = grouped_order(order, places=samples + more, batch_size=batch_size, seed=seed, epoch=epoch)
    counts = np.bincount(found, minlength=samples)
    assert len(found) == samples + more
    assert counts.min() >= 1
    assert counts.max() - counts.min() <= 1


@given(st.integers(1, 60), st.integers(1, 7), SMALL, SMALL)
def test_no_batch_holds_the_shortest_and_the_longest(places: int, batch_size: int, seed: int, epoch: int) -> None:
    found = grouped_order(np.arange(places), places=places, batch_size=batch_size, seed=seed, epoch=epoch)
    for start in range(0, places - batch_size + 1, batch_size):
        batch = found[start : start + batch_size]
        assert (np.diff(batch) == 1).all(), "a batch is a piece of the sorted order"


def test_epochs_begin_at_other_places_and_seeds_decide() -> None:
    def begins(seed: int) -> list[int]:
        return [rotation(1000, batch_size=4, seed=seed, epoch=epoch) for epoch in range(20)]

    assert begins(0) == begins(0)
    assert begins(0) != begins(1)
    assert len(set(begins(0))) > 15


def test_bad_numbers() -> None:
    with pytest.raises(ConfigError, match="found max_length 0"):
        length_order([1, 2], 0)
    with pytest.raises(ConfigError, match="2 places for 3 samples"):
        stretch(np.arange(3), 2)
    with pytest.raises(ConfigError, match="3 places for 0 samples"):
        stretch(np.arange(0), 3)
    with pytest.raises(ConfigError, match="world size 0"):
        block_order(4, world_size=0, seed=0, epoch=0)
    with pytest.raises(ConfigError, match="2 lengths and 1 visual_tokens"):
        alike_bins([1, 2], 4, [0])
    with pytest.raises(ConfigError, match="sample 1 of 9 tokens"):
        alike_bins([1, 9], 4, [0, 0])
    with pytest.raises(ConfigError, match="pack_size 0"):
        plan_bins([1], [0], pack_size=0)
    with pytest.raises(ConfigError, match=r"packing_ratio 1\.5"):
        plan_bins([1], [0], pack_size=4, ratio=1.5)
    with pytest.raises(ConfigError, match="max_packs 0"):
        plan_bins([1], [0], pack_size=4, max_packs=0)


@given(LENGTHS)
def test_first_fit_is_first_fit(lengths: list[int]) -> None:
    naive: list[list[int]] = []
    for length in sorted(lengths, reverse=True):
        home = next((bin_ for bin_ in naive if sum(bin_) + length <= 60), None)
        if home is None:
            naive.append(home := [])
        home.append(length)
    bins = first_fit(np.array(lengths, dtype=np.int64), 60)
    found = [sorted(lengths[i] for i in bins.members[a:b]) for a, b in zip(bins.starts, bins.starts[1:], strict=False)]
    assert found == [sorted(bin_) for bin_ in naive]


def test_many_items_take_no_time_to_speak_of() -> None:
    lengths = np.random.default_rng(0).lognormal(5.5, 1.0, 200_000).astype(np.int64).clip(1, 8192)
    assert len(first_fit(lengths, 8192)) <= 1.001 * lower_bound(lengths, 8192) + 1


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), max_size=60),
    st.floats(0.3, 1.0),
    st.booleans(),
    st.none() | st.integers(1, 5),
)
def test_every_sample_has_exactly_one_place(
    samples: list[tuple[int, int]], ratio: float, drop_long: bool, max_packs: int | None
) -> None:
    lengths, visual = [length for length, _ in samples], [tokens for _, tokens in samples]
    plan = plan_bins(lengths, visual, pack_size=30, ratio=ratio, drop_long=drop_long, max_packs=max_packs)
    placed = sorted([place for bin_ in plan.bins for place in bin_] + plan.too_long + plan.beyond)
    assert placed == [place for place, length in enumerate(lengths) if length]
    for bin_ in plan.bins:
        filled = sum(lengths[place] for place in bin_)
        assert filled <= max(1, int(30 * ratio)) or len(bin_) == 1
        assert filled <= 30 or not drop_long
    seen = [sum(visual[place] for place in bin_) for bin_ in plan.bins]
    assert seen == sorted(seen, reverse=True)


@given(st.integers(0, 60), st.integers(1, 8), SMALL, SMALL)
def test_blocks_stay_together(packs: int, world_size: int, seed: int, epoch: int) -> None:
    order = block_order(packs, world_size=world_size, seed=seed, epoch=epoch)
    assert sorted(order.tolist()) == list(range(packs))
    for start in range(0, packs - world_size + 1, world_size):
        block = np.sort(order[start : start + world_size])
        assert block[0] % world_size == 0
        assert (np.diff(block) == 1).all()


def test_the_balance_survives_shuffling_where_plain_shuffling_loses_it() -> None:
    random = np.random.default_rng(7)
    lengths = random.lognormal(5.5, 0.8, 20_000).astype(np.int64).clip(2, 2048)
    visual = (lengths * random.random(20_000) * (random.random(20_000) < 0.5)).astype(np.int64)
    bins = alike_bins(lengths.tolist(), 4096, visual.tolist())
    costs = np.array([visual[bin_].sum() for bin_ in bins], dtype=np.float64)
    steps = len(bins) // 64

    def factor(order: np.ndarray) -> float:
        return straggler_factor(costs[order[: steps * 64]].reshape(steps, 64))

    blocks = factor(block_order(len(bins), world_size=64, seed=0, epoch=3))
    shuffled = factor(random.permutation(len(bins)))
    assert blocks < 1.15
    assert shuffled > 1.25
    assert blocks - 1 < (shuffled - 1) / 2
