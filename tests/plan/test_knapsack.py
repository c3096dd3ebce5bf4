"""Every algorithm keeps the same law; best fit equals a naive best fit, item by item."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading.plan.knapsack import ALGORITHMS
from lading.plan.knapsack.best_fit import best_fit
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
@given(lengths=LENGTHS)
def test_every_item_is_in_one_bin_and_no_bin_overflows(name: str, lengths: list[int]) -> None:
    bins = ALGORITHMS[name](np.array(lengths, dtype=np.int64), CAPACITY)
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
    assert len(ALGORITHMS["tight_fit"](values, CAPACITY)) <= len(best_fit(values, CAPACITY))


@settings(max_examples=100)
@given(st.lists(st.integers(1, CAPACITY), min_size=1, max_size=9))
def test_the_first_bin_is_as_full_as_any_subset_makes_it(lengths: list[int]) -> None:
    values = np.array(lengths, dtype=np.int64)
    bins = ALGORITHMS["exact_fill"](values, CAPACITY)
    longest, *others = sorted(lengths, reverse=True)
    best = max(
        longest + sum(chosen)
        for count in range(len(others) + 1)
        for chosen in combinations(others, count)
        if longest + sum(chosen) <= CAPACITY
    )
    assert values[bins.members[: bins.starts[1]]].sum() == best
