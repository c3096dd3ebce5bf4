"""Packed = unpacked holds for every family, and every way of breaking it is seen and named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from lading import families, toy
from lading.errors import ConfigError, CorpusError
from lading.family import Attention
from lading.fields import IGNORE_INDEX
from lading.records import Batch
from lading.verify import Verification, verify

REFUSES_CLIPS = ("gemma4", "kimi_k25")
"""Families whose model class in transformers 5.22 refuses any clip, packed or not: their files say why."""
PACK_SIZES = {"phi4_mm": 1024, "step3p7": 1024}
"""Families whose toys show pictures of one size, of hundreds of tokens each."""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=10)


def checked(meta: Path, name: str = "qwen2_5_vl", **options: Any) -> Verification:
    return verify(meta, f"toy:{name}", **{"pack_size": PACK_SIZES.get(name, 512), **options})


@pytest.mark.parametrize("attention", ["positions", "mask"])
@pytest.mark.parametrize("name", families.names())
def test_every_family_holds(meta: Path, name: str, attention: Attention) -> None:
    found = checked(meta, name, attention=attention)
    assert found.holds, found.differences
    clips = "video" in families.find(name).media
    expected = {} if clips else {"unsupported_media": 1}
    too_long = found.dropped.get("too_long", 0)
    assert dict(found.dropped) == {**expected, **({"too_long": too_long} if name in PACK_SIZES and too_long else {})}
    assert found.documents == 10 - sum(found.dropped.values()) >= 6
    assert found.losses == (9 if name in REFUSES_CLIPS else found.documents)
    assert found.packs < found.losses, "no two documents share a pack"
    if name in REFUSES_CLIPS:
        (reason,) = found.not_run
        assert reason.startswith("loss, sight: inputs that ")
        assert found.not_run[reason] == 1
    else:
        assert found.not_run == {}
    assert 0 < found.max_abs_loss_diff <= found.tolerance


Fault = Callable[[Batch], dict[str, Any]]


def not_reset(batch: Batch) -> dict[str, Any]:
    positions = batch.tensor("position_ids")
    return {"position_ids": torch.arange(positions.shape[-1]).expand_as(positions)}


def too_wide(batch: Batch) -> dict[str, Any]:
    length = batch.tensor("input_ids").shape[1]
    future = torch.ones(length, length).triu(1).bool()
    return {"attention_mask": torch.zeros(1, 1, length, length).masked_fill(future, -1e30)}


def shifted_twice(batch: Batch) -> dict[str, Any]:
    labels = torch.roll(batch.tensor("shift_labels"), -1, dims=-1)
    return {"labels": labels, "shift_labels": labels}


def neighbour_learnt(batch: Batch) -> dict[str, Any]:
    """The shift over the whole row: the last place of a document learns its neighbour's first token."""
    labels, ids = batch.tensor("labels").clone(), batch.tensor("input_ids")
    end = batch.rows[0][0].tokens
    labels[0, end - 1] = ids[0, min(end, ids.shape[1] - 1)]
    return {"labels": labels, "shift_labels": labels}


def swapped_pixels(batch: Batch) -> dict[str, Any]:
    return {"pixel_values": batch.tensor("pixel_values").flip(0)} if "pixel_values" in batch else {}


def lost_pixels(batch: Batch) -> dict[str, Any]:
    return {"pixel_values": batch.tensor("pixel_values")[4:]} if "pixel_values" in batch else {}


def another_word(batch: Batch) -> dict[str, Any]:
    ids = batch.tensor("input_ids").clone()
    ids[0, 1] += 1
    return {"input_ids": ids}


def broken(fault: Fault) -> Callable[[Iterable[Batch]], Iterator[Batch]]:
    def through(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            yield replace(batch, inputs={**batch.inputs, **fault(batch)})

    return through


@pytest.mark.parametrize(
    ("fault", "attention", "aspects"),
    [
        (not_reset, "positions", {"positions", "loss", "sight"}),
        (not_reset, "mask", {"positions"}),
        (too_wide, "mask", {"loss", "sight"}),
        (shifted_twice, "positions", {"labels", "loss"}),
        (neighbour_learnt, "positions", {"labels", "loss"}),
        (swapped_pixels, "positions", {"pixels", "loss"}),
        (lost_pixels, "positions", {"pixels", "loss"}),
        (another_word, "positions", {"tokens", "loss"}),
    ],
)
def test_a_fault_is_seen_and_named(meta: Path, fault: Fault, attention: Attention, aspects: set[str]) -> None:
    found = checked(meta, attention=attention, through=broken(fault))
    assert not found.holds
    seen = {difference.aspect for difference in found.differences}
    # (A constant added to all positions of a document leaves rotary attention as it was.)
    assert seen - {"loss"} == aspects - {"loss"}
    assert aspects <= seen
    assert all(difference.where.rpartition(":")[2].isdigit() for difference in found.differences)
    said = found.to_dict()
    for aspect in ("tokens", "labels", "positions", "pixels"):
        assert said[f"{aspect}_equal"] == (aspect not in aspects)
    assert (said["leaking_documents"] > 0) == ("sight" in aspects)


def test_a_lost_batch_is_named(meta: Path) -> None:
    def through(batches: Iterable[Batch]) -> Iterator[Batch]:
        yield from list(batches)[1:]

    found = checked(meta, through=through)
    assert not found.holds
    assert found.to_dict()["lost"] == 10 - found.documents > 0
    assert {difference.detail for difference in found.differences} == {"in 0 packs; wanted 1"}


def test_a_document_that_nobody_lists_is_named(meta: Path) -> None:
    lost: list[str] = []

    def through(batches: Iterable[Batch]) -> Iterator[Batch]:
        for batch in batches:
            row = batch.rows[0]
            text_last = len(row) > 1 and not row[-1].media and not lost
            lost.extend([row[-1].key.where] if text_last else [])
            yield replace(batch, rows=(row[:-1],)) if text_last else batch

    found = checked(meta, through=through)
    assert {difference.where for difference in found.differences if difference.aspect == "lost"} == set(lost)
    assert found.to_dict()["lost"] == 1
    assert any("belong to no document" in difference.detail for difference in found.differences)


def test_a_repeated_document_is_named(meta: Path) -> None:
    def through(batches: Iterable[Batch]) -> Iterator[Batch]:
        every = list(batches)
        yield from [*every, every[0]]

    found = checked(meta, through=through)
    assert {difference.detail for difference in found.differences} == {"in 2 packs; wanted 1"}


def test_a_model_that_breaks_only_when_packed_is_no_success(meta: Path) -> None:
    found = checked(meta, through=broken(lambda batch: {"position_ids": batch.tensor("position_ids")[..., :-1]}))
    assert not found.holds


def test_labels_that_train_the_user_are_seen(meta: Path) -> None:
    """Training on everything is the commonest silent fault: labels = ids, shifted once, as it should be."""

    def everything(batch: Batch) -> dict[str, Any]:
        labels = torch.roll(batch.tensor("input_ids"), -1, dims=-1)
        ends = torch.tensor([document.tokens for document in batch.rows[0]]).cumsum(0) - 1
        labels[0, ends] = IGNORE_INDEX
        return {"labels": labels, "shift_labels": labels}

    found = checked(meta, through=broken(everything))
    assert found.differing("labels") == 10


def test_the_limit_is_spread_over_the_corpus(meta: Path) -> None:
    found = checked(meta, limit=3, tolerance=-1.0)
    places = {Path(difference.where).name for difference in found.differences}
    assert found.samples == 3
    assert len({place.partition(":")[0] for place in places}) == 3, "the first, one of the middle, the last"


def test_a_model_from_a_folder(meta: Path, tmp_path: Path) -> None:
    toy.model("qwen2_5_vl").save_pretrained(tmp_path / "model")
    found = checked(meta, model=str(tmp_path / "model"))
    assert found.holds
    assert (found.model, found.tolerance) == (str(tmp_path / "model"), 1e-3)
    with pytest.raises(ConfigError, match="cannot load as a model"):
        checked(meta, model=str(tmp_path))


@pytest.fixture
def clips(meta: Path) -> Path:
    path = meta.with_name("only-clips.json")
    path.write_text(json.dumps({"clips": {"file_name": "clips.jsonl", "media_dir": "media"}}))
    return path


def test_clips_alone_that_the_model_refuses_are_said_not_to_be_compared(clips: Path) -> None:
    said = verify(clips, "toy:gemma4", pack_size=512).to_dict()
    assert (said["holds"], said["documents"], said["losses_compared"], said["not_run"]) == (True, 1, 0, 1)
    assert said["max_abs_loss_diff"] is None
    assert said["tokens_equal"]
    broken_words = verify(clips, "toy:gemma4", pack_size=512, through=broken(another_word))
    assert not broken_words.holds


def test_nothing_to_compare_is_no_success(meta: Path, clips: Path) -> None:
    with pytest.raises(CorpusError, match="nothing to train on"):
        checked(meta, pack_size=3)
    with pytest.raises(CorpusError, match="unsupported_media 1"):
        verify(clips, "toy:smolvlm", pack_size=512)
    with pytest.raises(ConfigError, match="at least one sample"):
        checked(meta, limit=0)
