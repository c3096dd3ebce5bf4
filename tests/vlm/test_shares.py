import json
from collections import Counter
from itertools import accumulate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.sources import open_corpus
from lading.sources.corpus import choose
from lading.vlm.mixture import largest_share, rows_of_rank, share

RATIOS = [0.0, 0.3, 0.5, 1.0, 1.5, 2.0, 2.7]


@given(st.lists(st.integers(0, 9), max_size=5), st.integers(1, 5))
def test_shares_are_disjoint_interleaved_and_whole(sizes: list[int], world_size: int) -> None:
    ends = tuple(accumulate(sizes))
    shares = [share(ends, rank, world_size).tolist() for rank in range(world_size)]
    total = sum(sizes)
    assert sorted(number for one in shares for number in one) == list(range(total))
    for start, stop in zip((0, *ends), ends, strict=False):
        whole = list(range(start, stop))
        for rank, one in enumerate(shares):
            assert [number for number in one if start <= number < stop] == whole[rank::world_size]
    lengths = [len(one) for one in shares]
    assert lengths[0] == max(lengths) == largest_share(ends, world_size)
    assert max(lengths) - min(lengths) <= len(sizes)


@pytest.mark.parametrize("ratio", RATIOS)
@given(rows=st.integers(0, 30), world_size=st.integers(1, 4))
def test_the_ratio_comes_before_the_share(ratio: float, rows: int, world_size: int) -> None:
    chosen = choose(rows, ratio)
    whole = list(range(rows)) if chosen is None else chosen.tolist()
    shares = [rows_of_rank(rows, ratio, rank, world_size).tolist() for rank in range(world_size)]
    assert shares == [whole[rank::world_size] for rank in range(world_size)]
    assert Counter(number for one in shares for number in one) == Counter(whole)


def test_a_repeated_data_set_is_shared_between_ranks(tmp_path: Path) -> None:
    """At ratio 2 on two ranks, neither rank may read the same half twice."""
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"n": n}) + "\n" for n in range(5)))
    (tmp_path / "meta.json").write_text(json.dumps({"a": {"file_name": "a.jsonl", "sample_ratio": 2}}))
    corpus = open_corpus(tmp_path / "meta.json")
    read = [[corpus.row(i).value["n"] for i in share(corpus.ends, rank, 2).tolist()] for rank in range(2)]
    assert read == [[0, 2, 4, 1, 3], [1, 3, 0, 2, 4]]


@pytest.mark.parametrize(("rank", "world_size"), [(2, 2), (-1, 2), (0, 0)])
def test_a_rank_outside_the_world_is_refused(rank: int, world_size: int) -> None:
    with pytest.raises(ConfigError, match=rf"found rank {rank} of {world_size}; wanted a world size"):
        share((3,), rank, world_size)


@pytest.mark.parametrize("ratio", [-0.5, float("nan")])
def test_a_ratio_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(ConfigError, match="wanted 0 or more"):
        rows_of_rank(3, ratio, 0, 1)
