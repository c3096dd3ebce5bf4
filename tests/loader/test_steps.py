"""Steps of the optimiser: several batches each, over several epochs, from wherever a cursor points."""

from pathlib import Path

import pytest

from lading import Loader
from lading.errors import ConfigError
from lading.records import Batch


def made(meta: Path, **options: int) -> Loader:
    return Loader(meta, "toy:qwen2_5_vl", pack_size=300, **options)


def numbers(step: list[Batch]) -> list[list[int]]:
    return [[document.key.index for document in batch.rows[0]] for batch in step]


def test_they_are_the_batches_of_every_epoch_in_order(toy_meta: Path) -> None:
    loader = made(toy_meta)
    each = [numbers([batch]) for _ in range(2) for batch in loader]
    steps = [numbers(step) for step in made(toy_meta).steps(epochs=2, accumulate=4)]
    assert [[one] for step in steps for one in step] == each
    assert len(loader) % 4, "the last step of an epoch has fewer"
    in_epoch = -(-len(loader) // 4)
    assert [len(step) for step in steps] == 2 * [*[4] * (in_epoch - 1), len(loader) % 4]


def test_a_cursor_at_any_step_leaves_the_others(toy_meta: Path) -> None:
    whole, states = [], []
    loader = made(toy_meta)
    for step in loader.steps(epochs=2, accumulate=3):
        whole.append(numbers(step))
        states.append(loader.state_dict())
    half = len(whole) // 2  # an epoch
    for done in (1, half - 1, half, half + 1, len(whole)):
        later = made(toy_meta)
        later.load_state_dict(states[done - 1])
        assert [numbers(step) for step in later.steps(epochs=2, accumulate=3)] == whole[done:]
        later.ledger.check()


def test_epochs_that_are_over_are_not_trained_again(toy_meta: Path) -> None:
    loader = made(toy_meta)
    assert len(list(loader.steps(epochs=1))) == len(loader)
    assert list(loader.steps(epochs=1)) == []
    assert len(list(loader.steps(epochs=2))) == len(loader)
    assert loader.config.epoch == 1


@pytest.mark.parametrize("size", [1, 2])
def test_the_next_pass_begins_behind_what_a_cursor_counts(toy_meta: Path, size: int) -> None:
    loader = made(toy_meta, batch_size=size)
    batches = iter(loader)
    for done in range(1, 4):
        next(batches)
        later = made(toy_meta, batch_size=size)
        assert later.resumes_at == loader.resumes_at == 0, "only a cursor is carried on from"
        later.load_state_dict(loader.state_dict())
        assert later.resumes_at == done
    assert len(list(later)) == len(later) - done
    assert later.resumes_at == 0


def test_ranks_take_as_many(toy_meta: Path) -> None:
    loaders = [made(toy_meta, rank=rank, world_size=2) for rank in range(2)]
    first, second = ([len(step) for step in loader.steps(epochs=1, accumulate=3)] for loader in loaders)
    assert first == second


def test_a_step_without_batches_is_refused(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="accumulate 0"):
        next(made(toy_meta).steps(epochs=1, accumulate=0))
