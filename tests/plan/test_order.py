"""Every way of placing keeps the same law; the balanced one is balanced in everything at once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.plan.costs import straggler_factors
from lading.plan.order import PLACINGS, order_packs


@pytest.mark.parametrize("placing", PLACINGS)
@given(packs=st.integers(0, 70), world_size=st.integers(1, 9), seed=st.integers(0, 5))
def test_every_pack_is_placed_once_and_the_last_step_is_filled(
    placing: str, packs: int, world_size: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    costs = random.random((packs, 3)).astype(np.float32)
    placed = order_packs(costs, world_size=world_size, random=random, placing=placing)
    assert placed.order.shape == (-(-packs // world_size), world_size)
    assert placed.repeated == -packs % world_size
    places = placed.order.ravel().tolist()
    own = places[: len(places) - placed.repeated]
    assert sorted(own) == list(range(packs)), "repeats stand at the very end"
    if world_size <= packs:
        assert len(set(placed.order[-1].tolist())) == world_size, "a step repeats packs of other steps, not its own"


def test_a_step_is_alike_in_everything_and_steps_are_in_random_order() -> None:
    random = np.random.default_rng(0)
    costs = np.stack([np.ones(6400), random.lognormal(0, 0.5, 6400), random.random(6400)], axis=1).astype(np.float32)
    found = {}
    for placing in PLACINGS:
        placed = order_packs(costs, world_size=16, random=np.random.default_rng(1), placing=placing)
        found[placing] = straggler_factors(costs, placed.order)
    assert found["balanced"].attention < 1.15
    assert found["balanced"].vision < 1.1
    assert found["shuffled"].attention > 1.8
    assert found["cost_sorted"].vision > 1.3
    assert found["vt_sorted"].attention > 1.8
    balanced = order_packs(costs, world_size=16, random=np.random.default_rng(1))
    steps = costs.sum(axis=1)[balanced.order].mean(axis=1)
    assert abs(np.corrcoef(steps, np.arange(len(steps)))[0, 1]) < 0.15
