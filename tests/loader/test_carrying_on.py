"""Resuming and accounting, in the cases that are easy to get wrong."""

import io
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lading import Loader, toy
from lading.errors import ConfigError
from lading.ledger import Ledger
from lading.plan.file import save_plan
from lading.records import Batch, Work

TOY = "toy:qwen2_5_vl"


def documents(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


def merged(loaders: list[Loader]) -> Ledger:
    books = loaders[0].ledger
    for loader in loaders[1:]:
        books.merge(loader.ledger)
    books.check()
    return books


def group(meta: Path, ranks: int, **options: Any) -> list[Loader]:
    return [
        Loader(meta, TOY, **{"pack_size": 300, "world_size": ranks, "rank": rank, **options}) for rank in range(ranks)
    ]


@pytest.mark.parametrize("before", [1, 2, 4])
@pytest.mark.parametrize("after", [1, 3, 4])
def test_what_is_dropped_at_the_end_was_not_trained_on(toy_meta: Path, before: int, after: int) -> None:
    seen: Counter[int] = Counter()
    first = group(toy_meta, before, last_step="drop")
    for _, batches in zip(range(2), zip(*first, strict=True), strict=False):
        seen.update(index for batch in batches for index in documents(batch))
    second = group(toy_meta, after, last_step="drop")
    for loader in second:
        loader.load_state_dict(first[0].state_dict())
        seen.update(index for batch in loader for index in documents(batch))
    books = merged(second)
    assert books.total()["trained"] == len(seen)
    assert {int(str(entry["index"])) for entry in books.entries()} == set(range(60)) - set(seen)
    assert set(seen.values()) == {1}


def test_an_epoch_that_is_over_stays_over(toy_meta: Path) -> None:
    """With other ranks, and whatever is said of its last step."""
    four = group(toy_meta, 4, last_step="drop")
    seen = {index for loader in four for batch in loader for index in documents(batch)}
    assert len(seen) < 60
    for last_step in ("drop", "repeat"):
        two = group(toy_meta, 2, last_step=last_step)
        for loader in two:
            loader.load_state_dict(four[0].state_dict())
            assert list(loader) == []
        assert merged(two).total()["trained"] == len(seen)
    one = Loader(toy_meta, TOY, pack_size=300)
    list(one)
    other = Loader(toy_meta, TOY, pack_size=300, last_step="drop")
    other.load_state_dict(one.state_dict())
    assert other.ledger.total()["trained"] == 60


def test_repeats_are_remembered(toy_meta: Path) -> None:
    four = group(toy_meta, 4)
    seen = Counter(index for loader in four for batch in loader for index in documents(batch))
    extra = sum(seen.values()) - 60
    assert merged(four).repeats == extra > 0
    three = group(toy_meta, 3)
    for loader in three:
        loader.load_state_dict(four[1].state_dict())
    assert merged(three).repeats == extra


def test_another_model_is_another_plan(toy_meta: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"pack_size": 300, "algorithm": "best_fit"}
    first = Loader(toy_meta, TOY, **options)
    other = Work(token=1.0, pair=0.0, patch=0.0)
    with pytest.raises(ConfigError, match="costs"):
        Loader(toy_meta, TOY, work=other, **options).load_state_dict(first.state_dict())
    save_plan(first.plan, tmp_path / "x")
    with pytest.raises(ConfigError, match="another model"):
        Loader(toy_meta, TOY, work=other, plan=tmp_path / "x", **options)


def test_a_corpus_of_the_same_lengths_may_be_another(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    state = Loader(meta, TOY, pack_size=300).state_dict()
    talks = tmp_path / "talks.jsonl"
    lines = talks.read_text().splitlines()
    talks.write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    with pytest.raises(ConfigError, match="source talks '"):
        Loader(meta, TOY, pack_size=300).load_state_dict(state)


def test_a_state_is_plain_values(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    loader = Loader(meta, TOY, pack_size=300)
    broken = tmp_path / "media" / "shape-3.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    list(loader)
    state = loader.state_dict()
    assert state["dropped"], "the broken picture"
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    assert torch.load(buffer, weights_only=True) == state == json.loads(json.dumps(state))


def test_states_of_all_ranks_know_all_failures(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path, samples=30)
    two = group(meta, 2)
    for name in ("shape-3.png", "shape-10.png", "shape-1.png"):
        broken = tmp_path / "media" / name
        broken.write_bytes(broken.read_bytes()[:-40])
    for loader in two:
        list(loader)
    failed = merged(two).total()["dropped"] + two[0].ledger.total()["replaced"]
    states = [loader.state_dict() for loader in two]
    one = two[1]
    one.load_state_dict(states)
    assert len(one.ledger.entries()) == failed == 3


def test_a_damaged_plan_is_noticed_before_the_first_step(toy_meta: Path, tmp_path: Path) -> None:
    save_plan(Loader(toy_meta, TOY, pack_size=300).plan, tmp_path / "x")
    content = bytearray((tmp_path / "x").read_bytes())
    header = content.index(b"\n", len(b"lading plan 4\n") + 1)
    content[(header // 64 + 1) * 64] ^= 1
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ConfigError, match="damaged"):
        Loader(toy_meta, TOY, pack_size=300, plan=tmp_path / "x")


def test_min_pixels_set_on_the_processor_are_honoured(toy_meta: Path) -> None:
    import copy

    processor = copy.deepcopy(toy.processor("qwen2_5_vl"))
    plain = Loader(toy_meta, processor, pack_size=2000).lengths.patches.sum()
    processor.image_processor.min_pixels = 4 * processor.image_processor.size["shortest_edge"] + 20_000
    assert Loader(toy_meta, processor, pack_size=2000).lengths.patches.sum() > plain


@pytest.mark.parametrize(
    ("given", "found"),
    [("step-5.json", "a str"), (None, "a NoneType"), ([], "no state in an empty list"), (b"", "a bytes")],
)
def test_what_is_no_state_is_told(toy_meta: Path, given: Any, found: str) -> None:
    with pytest.raises(ConfigError, match=rf"{found}; wanted what state_dict\(\) gave"):
        Loader(toy_meta, TOY, pack_size=300).load_state_dict(given)


def test_a_plan_whose_packs_are_not_of_their_samples_is_refused(toy_meta: Path, tmp_path: Path) -> None:
    """Every number in range and every digest right, but two samples stand in each other's packs."""
    loader = Loader(toy_meta, TOY, pack_size=300)
    plan, tokens = loader.plan, loader.lengths.tokens
    members, (one, end) = plan.members.copy(), plan.starts[1:3]  # the costs of the first pack are compared as well
    other = next(place for place in range(end, len(members)) if tokens[members[place]] != tokens[members[one]])
    members[[one, other]] = members[[other, one]]
    save_plan(replace(plan, members=members), tmp_path / "x")
    with pytest.raises(ConfigError, match="other tokens than their samples"):
        Loader(toy_meta, TOY, pack_size=300, plan=tmp_path / "x")
