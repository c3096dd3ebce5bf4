"""Any sequence of numbers of ranks goes through every pack once."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError
from lading.plan import make_plan
from lading.plan.carry_on import EpochSegment, schedule
from lading.records import LengthTable, PackPlan


def plan_of(samples: int, world_size: int) -> PackPlan:
    tokens = np.random.default_rng(0).integers(1, 60, samples)
    return make_plan(LengthTable.of(tokens=tokens, patches=tokens % 7), pack_size=64, world_size=world_size)


@given(st.integers(1, 120), st.lists(st.tuples(st.integers(1, 8), st.floats(0, 1)), min_size=1, max_size=4))
def test_nothing_is_lost_or_repeated_but_in_the_last_step(samples: int, runs: list[tuple[int, float]]) -> None:
    plan = plan_of(samples, runs[0][0])
    trained: list[int] = []
    segments: list[EpochSegment] = []
    for ranks, share in runs:
        left = schedule(plan, [*segments, EpochSegment(world_size=ranks, steps=0)])
        assert sorted(left.before.tolist()) == sorted(set(trained))
        steps = min(int(share * len(left.order)), max(0, len(left.order) - 1))
        trained += left.order[:steps].ravel().tolist()
        segments.append(EpochSegment(world_size=ranks, steps=steps))
    rest = schedule(plan, segments)
    whole = rest.order[segments[-1].steps :].ravel().tolist()
    trained += whole[: len(whole) - rest.repeated]
    assert sorted(trained) == list(range(len(plan)))
    assert rest.last_step().tolist() == (
        rest.order[-1, : rest.world_size - rest.repeated].tolist() if rest.repeated else []
    )


def test_a_stretch_does_not_depend_on_who_made_the_plan() -> None:
    """A cursor of eight ranks is the same for whoever planned for eight, and for whoever planned for three."""
    segments = [EpochSegment(world_size=8, steps=2), EpochSegment(world_size=3, steps=0)]
    one, other = (schedule(plan_of(300, ranks), segments) for ranks in (8, 3))
    assert np.array_equal(one.order, other.order)
    assert np.array_equal(one.before, other.before)


def test_a_segment_longer_than_the_epoch_is_refused() -> None:
    with pytest.raises(ConfigError, match="999 steps with 2 ranks"):
        schedule(plan_of(50, 2), [EpochSegment(world_size=2, steps=999), EpochSegment(world_size=1, steps=0)])
    with pytest.raises(ConfigError, match="no segment"):
        schedule(plan_of(50, 2), [])
