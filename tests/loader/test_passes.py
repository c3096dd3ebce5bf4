"""Passes that end early, several at a time, and loaders that travel."""

import copy
import logging
import pickle
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from lading import ConfigError, Loader
from lading.records import Batch


def made(meta: Path, **options: int) -> Loader:
    return Loader(meta, "toy:qwen2_5_vl", pack_size=300, **options)


def numbers(batches: object) -> list[list[int]]:
    return [[document.key.index for row in batch.rows for document in row] for batch in batches]  # type: ignore[attr-defined]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_pass_goes_on_where_the_last_one_broke_off(
    toy_meta: Path, workers: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole = numbers(made(toy_meta))
    loader = made(toy_meta, num_workers=workers)
    passes = []
    with caplog.at_level(logging.WARNING, "lading"):
        while sum(map(len, passes)) < len(whole):
            passes.append(numbers(islice(loader, 3)))
    assert [batch for one in passes for batch in one] == whole
    assert Counter(index for batch in whole for index in batch) == dict.fromkeys(range(60), 1)
    loader.ledger.check()
    told = [record.message for record in caplog.records if "goes on there" in record.message]
    assert len(told) == 1, "said once"
    assert numbers(islice(loader, 2)) != whole[:2], "then comes the next epoch"
    assert loader.config.epoch == 1


def test_an_epoch_that_is_chosen_begins_at_its_first_batch(toy_meta: Path) -> None:
    loader = made(toy_meta)
    whole = numbers(loader)
    loader.set_epoch(0)
    assert numbers(islice(loader, 3)) == whole[:3]
    loader.set_epoch(0)
    assert numbers(loader) == whole


def test_a_state_in_a_pass_that_broke_off_points_behind_it(toy_meta: Path) -> None:
    whole, loader = numbers(made(toy_meta)), made(toy_meta)
    list(islice(loader, 3))
    list(islice(loader, 2))
    other = made(toy_meta)
    other.load_state_dict(loader.state_dict())
    assert numbers(other) == whole[5:]


def test_an_older_pass_is_not_mixed_with_a_newer_one(toy_meta: Path) -> None:
    loader = made(toy_meta)
    older: object = iter(loader)
    next(older)  # type: ignore[call-overload]
    newer = iter(loader)
    next(newer)
    with pytest.raises(ConfigError, match="another pass"):
        next(older)  # type: ignore[call-overload]
    next(newer)
    loader.set_epoch(3)
    with pytest.raises(ConfigError, match="set_epoch"):
        next(newer)


@pytest.mark.parametrize("travel", [lambda loader: pickle.loads(pickle.dumps(loader)), copy.deepcopy])
def test_a_loader_travels_in_the_middle_of_an_epoch(toy_meta: Path, travel: object) -> None:
    loader = made(toy_meta)
    list(islice(loader, 3))
    other: Loader = travel(loader)  # type: ignore[operator]
    assert str(other.ledger) == str(loader.ledger)
    assert other.state_dict() == loader.state_dict()
    rest, others = list(loader), list(other)
    assert numbers(rest) == numbers(others)
    assert [float(batch.tensor("input_ids").sum()) for batch in rest] == [
        float(batch.tensor("input_ids").sum()) for batch in others
    ]
    other.ledger.check()
    assert other.ledger.repeated() == []


def test_a_generator_of_datasets_may_hold_a_loader(toy_meta: Path, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    loader = made(toy_meta)

    def rows(loader: Loader) -> object:
        batch: Batch
        for batch in loader:
            yield {"tokens": batch.tensor("input_ids").shape[1], "labels": batch.label_tokens}

    made_of_it = datasets.Dataset.from_generator(rows, gen_kwargs={"loader": loader}, cache_dir=str(tmp_path))
    assert len(made_of_it) == len(loader)


def test_a_pass_that_has_nothing_left_says_so(toy_meta: Path, caplog: pytest.LogCaptureFixture) -> None:
    loader = made(toy_meta)
    whole = numbers(loader)
    other, steps = made(toy_meta), made(toy_meta)
    for one in (other, steps):
        one.load_state_dict(loader.state_dict())
    with caplog.at_level(logging.WARNING, "lading"):
        assert [batch for step in steps.steps(epochs=2) for batch in numbers(step)] == numbers(loader)
        assert not caplog.records, "steps count their epochs"
        assert numbers(other) == []
    (said,) = caplog.records
    assert "end of epoch 0: this pass has no batches" in said.message
    assert sorted(map(tuple, numbers(other))) != sorted(map(tuple, whole)), "the next epoch"
