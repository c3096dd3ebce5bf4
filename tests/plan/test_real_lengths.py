"""Balance on real lengths: the goals that the plan was built for."""

import numpy as np
import pytest

from benchmarks.balance import PACK_SIZE, SEED, published
from lading.families.internvl import FAMILY
from lading.plan import make_plan, plan_stats
from lading.records import LengthTable
from tests.support.shared import shared_data


@pytest.fixture(scope="module")
def table() -> LengthTable:
    tokens, tiles = published(shared_data("omnibal_lengths"))
    text = np.random.default_rng(SEED).lognormal(np.log(400), 1.0, len(tokens) // 2).astype(int).clip(16, PACK_SIZE)
    return LengthTable.of(
        tokens=np.concatenate([tokens, text]), patches=np.concatenate([tiles, np.zeros(len(text), dtype=int)])
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("ranks", [8, 64])
def test_ranks_are_balanced_in_all_three_and_packs_are_full(table: LengthTable, ranks: int, seed: int) -> None:
    plan = make_plan(table, pack_size=PACK_SIZE, world_size=ranks, seed=seed, work=FAMILY.work)
    stats = plan_stats(plan, table)
    assert stats.straggler <= 1.004
    assert stats.straggler_vision <= 1.015
    assert stats.straggler_attention <= 1.03
    tight = plan_stats(make_plan(table, pack_size=PACK_SIZE, algorithm="best_fit"), table)
    assert stats.fill >= tight.fill * 0.995
    assert abs(stats.order_correlation) < 0.3


def test_shuffled_packs_are_not(table: LengthTable) -> None:
    plan = make_plan(table, pack_size=PACK_SIZE, world_size=64, algorithm="best_fit", placing="shuffled")
    stats = plan_stats(plan, table)
    assert stats.straggler_vision > 1.2
    assert stats.straggler_attention > 2
