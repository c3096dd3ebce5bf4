"""Validation data: the same in every pass, and every sample counts once on any number of ranks."""

import json
import shutil
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest
import torch

from lading import ConfigError, Loader, toy
from lading.records import Batch

TOY = "toy:qwen2_5_vl"


def made(meta: Path, **options: object) -> Loader:
    return Loader(meta, TOY, pack_size=300, validation=True, **options)


def numbers(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


def counted(batches: list[Batch]) -> Counter[int]:
    return Counter(number for batch in batches for number in numbers(batch) if number >= 0)


@pytest.fixture(scope="module")
def labels(toy_meta: Path) -> int:
    """Labels of the whole corpus, each sample encoded by itself; the first token of a document predicts nothing."""
    samples = Loader(toy_meta, TOY, pack_size=300).samples
    return sum(int((sample.tensors["labels"][1:] != -100).sum()) for sample in map(samples.encode, range(len(samples))))


@pytest.mark.parametrize("workers", [0, 1])
def test_every_pass_is_the_same_from_its_first_batch_on(toy_meta: Path, workers: int) -> None:
    loader = made(toy_meta, num_workers=workers)
    whole = [numbers(batch) for batch in loader]
    assert [numbers(batch) for batch in islice(loader, 2)] == whole[:2]
    assert [numbers(batch) for batch in loader] == whole, "a pass that broke off is not gone on with"
    assert loader.config.epoch == 0
    loader.ledger.check()
    loader.set_epoch(1)
    assert [numbers(batch) for batch in loader] != whole, "another order, if one is asked for"


@pytest.mark.parametrize(("world_size", "batch_size"), [(1, 1), (2, 1), (4, 1), (4, 3), (24, 1)])
def test_every_sample_counts_once_on_any_number_of_ranks(
    toy_meta: Path, labels: int, world_size: int, batch_size: int
) -> None:
    options = {"world_size": world_size, "batch_size": batch_size}
    loaders = [made(toy_meta, rank=rank, **options) for rank in range(world_size)]
    passes = [list(loader) for loader in loaders]
    assert {len(batches) for batches in passes} == {len(loaders[0])}, "as many batches on every rank"
    assert counted([batch for batches in passes for batch in batches]) == dict.fromkeys(range(60), 1)
    assert sum(batch.label_tokens for batches in passes for batch in batches) == labels
    books = loaders[0].ledger
    for loader in loaders[1:]:
        books.merge(loader.ledger)
    books.check()
    assert books.repeats == 0
    assert (books.total()["trained"], loaders[0].plan.repeated > 0) == (60, world_size > 1)


def test_what_fills_the_last_step_is_a_whole_pack_without_labels(toy_meta: Path) -> None:
    filled = list(made(toy_meta, world_size=4, rank=3))[-1]
    repeated = list(Loader(toy_meta, TOY, pack_size=300, world_size=4, rank=3))[-1]
    assert filled.label_tokens == 0 < repeated.label_tokens
    assert set(numbers(filled)) == {-1}
    assert filled.tensor("input_ids").equal(repeated.tensor("input_ids")), "work of the same kind as its neighbours'"
    assert set(filled) == set(repeated)


@pytest.mark.parametrize("after", [4, 3])
def test_a_cursor_points_into_a_pass(toy_meta: Path, after: int) -> None:
    first = [made(toy_meta, world_size=4, rank=rank) for rank in range(4)]
    whole = [list(loader) for loader in first]
    over = [loader.state_dict() for loader in first]
    seen = [batch for loader in first for batch in islice(loader, 3)]
    later = [made(toy_meta, world_size=after, rank=rank) for rank in range(after)]
    for loader in later:
        loader.load_state_dict([one.state_dict() for one in first])
        seen += list(loader)
        loader.load_state_dict(over)
        assert list(loader) == []
        assert loader.ledger.repeats == 0
    assert counted(seen) == counted([batch for batches in whole for batch in batches])


def test_what_stands_in_for_unreadable_packs_does_not_count(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=20)
    loader = Loader(meta, TOY, pack_size=96, validation=True)
    whole = [numbers(batch) for batch in loader]
    shutil.rmtree(tmp_path / "media")
    batches = list(loader)
    assert len(batches) == len(whole)
    assert set(counted(batches).values()) == {1}, "the samples of text alone, once each"
    total = loader.ledger.total()
    assert total["reasons"]["missing_media"] > 0 == total["replaced"]
    readable = [pack for pack in whole if counted(batches).keys() & set(pack)]
    assert sum(not batch.label_tokens for batch in batches) == len(whole) - len(readable) > 0
    loader.ledger.check()


def test_the_loss_of_a_step_is_a_sum_over_its_labels(toy_meta: Path) -> None:
    model = toy.model("qwen2_5_vl").eval()
    batch = list(made(toy_meta, world_size=4, rank=3))[-1]
    with torch.no_grad():
        assert model(**batch).loss.isnan(), "the mean of nothing"
        assert model(**batch, num_items_in_batch=1).loss == 0


def test_epochs_of_validation_have_no_steps(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="validation=True"):
        next(made(toy_meta).steps(epochs=2))


def test_a_state_is_plain(toy_meta: Path) -> None:
    loader = made(toy_meta)
    list(islice(loader, 2))
    other = made(toy_meta)
    other.load_state_dict(json.loads(json.dumps(loader.state_dict())))
    assert len(list(other)) == len(other) - 2
    assert len(list(other)) == len(other), "the next pass is whole again"
