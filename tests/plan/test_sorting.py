"""Sorting by digits and choosing by counting give what sorting all at once gives."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lading.plan.knapsack.balanced import _shortest
from lading.plan.knapsack.bins import stable_order


@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 1 << 17), st.integers(0, (1 << 62) - 1)), max_size=60))
def test_digit_by_digit_is_the_same_as_at_once(keys: list[int]) -> None:
    numbers = np.array(keys, dtype=np.int64)
    assert stable_order(numbers).tolist() == np.argsort(numbers, kind="stable").tolist()


@given(st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=40), st.sampled_from([0.1, 0.25, 0.4, 1.0]))
def test_the_shortest_are_those_a_sort_puts_first(items: list[tuple[int, bool]], share: float) -> None:
    lengths = np.array([length for length, _ in items], dtype=np.int64)
    seen = np.array([picture for _, picture in items], dtype=np.bool_)
    by_length = np.lexsort((lengths, seen))
    first = by_length[np.cumsum(lengths[by_length]) <= share * lengths.sum()]
    assert np.flatnonzero(_shortest(lengths, seen, 9, share)).tolist() == sorted(first.tolist())
