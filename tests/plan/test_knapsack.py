"""Every algorithm keeps the same law; best fit equals a naive best fit, item by item."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.plan.knapsack import ALGORITHMS
from lading.plan.knapsack.balanced import balanced
from lading.plan.knapsack.best_fit import best_fit, best_fit_into, tight_fit
from lading.plan.knapsack.exact_fill import exact_fill
from lading.plan.stats import lower_bound

CAPACITY = 50
LENGTHS = st.lists(st.integers(1, CAPACITY), max_size=80)


def rooms(lengths: list[int], capacity: int) -> list[int]:
    """Room left in each bin by best fit, longest first, one item at a time."""
    left: list[int] = []
    for length in sorted(lengths, reverse=True):
        fitting = [room for room in left if room >= length]
        if fitting:
            left.remove(min(fitting))
            left.append(min(fitting) - length)
        else:
            left.append(capacity - length)
    return sorted(left)


@pytest.mark.parametrize("name", ALGORITHMS)
@given(lengths=LENGTHS, data=st.data())
def test_every_item_is_in_one_bin_and_no_bin_overflows(name: str, lengths: list[int], data: st.DataObject) -> None:
    seen = data.draw(st.lists(st.integers(0, 9), min_size=len(lengths), max_size=len(lengths)))
    vision = np.array(seen, dtype=np.float64)
    bins = ALGORITHMS[name](np.array(lengths, dtype=np.int64), CAPACITY, vision)
    assert sorted(bins.members.tolist()) == list(range(len(lengths)))
    sums = [sum(lengths[i] for i in bins.members[a:b]) for a, b in zip(bins.starts, bins.starts[1:], strict=False)]
    assert all(0 < filled <= CAPACITY for filled in sums)
    assert len(bins) >= lower_bound(np.array(lengths, dtype=np.int64), CAPACITY)


@settings(max_examples=300)
@given(LENGTHS)
def test_groups_move_as_single_items_would(lengths: list[int]) -> None:
    bins = best_fit(np.array(lengths, dtype=np.int64), CAPACITY)
    sums = [sum(lengths[i] for i in bins.members[a:b]) for a, b in zip(bins.starts, bins.starts[1:], strict=False)]
    assert sorted(CAPACITY - filled for filled in sums) == rooms(lengths, CAPACITY)


def test_a_million_items_take_no_time_to_speak_of() -> None:
    lengths = np.random.default_rng(0).lognormal(5.5, 1.0, 300_000).astype(np.int64).clip(1, 8192)
    bins = best_fit(lengths, 8192)
    assert len(bins) <= 1.001 * lower_bound(lengths, 8192) + 1


@given(LENGTHS)
def test_tight_fit_never_needs_more_bins_than_best_fit(lengths: list[int]) -> None:
    values = np.array(lengths, dtype=np.int64)
    assert len(tight_fit(values, CAPACITY)) <= len(best_fit(values, CAPACITY))


@settings(max_examples=100)
@given(st.lists(st.integers(1, CAPACITY), min_size=1, max_size=9))
def test_the_first_bin_is_as_full_as_any_subset_makes_it(lengths: list[int]) -> None:
    values = np.array(lengths, dtype=np.int64)
    bins = exact_fill(values, CAPACITY)
    longest, *others = sorted(lengths, reverse=True)
    best = max(
        longest + sum(chosen)
        for count in range(len(others) + 1)
        for chosen in combinations(others, count)
        if longest + sum(chosen) <= CAPACITY
    )
    assert values[bins.members[: bins.starts[1]]].sum() == best


@given(st.lists(st.integers(0, CAPACITY), max_size=20), LENGTHS)
def test_best_fit_goes_on_with_bins_that_are_there(rooms_left: list[int], lengths: list[int]) -> None:
    bin_of_item, bins = best_fit_into(np.array(rooms_left, dtype=np.int64), np.array(lengths, dtype=np.int64), CAPACITY)
    room = rooms_left + [CAPACITY] * (bins - len(rooms_left))
    for length, bin_ in zip(lengths, bin_of_item.tolist(), strict=True):
        room[bin_] -= length
    assert all(left >= 0 for left in room)
    assert all(left < CAPACITY for left in room[len(rooms_left) :]), "no bin is opened for nothing"


def test_packs_are_alike_in_vision_and_as_full_as_best_fit_makes_them() -> None:
    random = np.random.default_rng(0)
    pictures = random.choice([1, 3, 5], 20_000)
    lengths = np.concatenate([256 * pictures + random.integers(30, 300, 20_000), random.integers(20, 2000, 10_000)])
    vision = np.concatenate([pictures, np.zeros(10_000)]).astype(np.float64)
    chance = random.permutation(len(lengths))
    lengths, vision = lengths[chance].astype(np.int64), vision[chance]
    spread = {}
    for name in ("balanced", "best_fit"):
        bins = ALGORITHMS[name](lengths, 8192, vision)
        sums = np.add.reduceat(vision[bins.members], bins.starts[:-1])
        spread[name] = sums.std() / sums.mean()
        assert len(bins) <= 1.003 * lower_bound(lengths, 8192)
    assert spread["balanced"] < spread["best_fit"] / 2


def test_balance_gives_way_where_it_would_cost_packs() -> None:
    lengths = np.tile(np.array([6, 4, 5, 5], dtype=np.int64), 50)
    assert len(balanced(lengths, 10, np.zeros(200))) == 100
