"""What `Loader(microbatches=…)` hands over: every row and every medium once, in microbatches of one shape."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lading import Batch, ConfigError, ExactnessError, Field, Loader, families, toy
from lading.fields import IGNORE_INDEX
from lading.media import placeholder
from lading.microbatch import PipelineBatch, cut_batch
from lading.tensors import join, row_axis

TOY = "toy:qwen2_5_vl"


def load(meta: Path, processor: str = TOY, **options: Any) -> Loader:
    sizes = {"pack_size": 400, "batch_size": 4, "microbatches": 2}
    return Loader(meta, processor, progress=False, **{**sizes, **options})


def batches(loader: Loader) -> list[PipelineBatch]:
    return [batch for batch in loader if isinstance(batch, PipelineBatch)]


@pytest.mark.parametrize("name", toy.recipes())
def test_the_microbatches_joined_are_the_batch(name: str, toy_meta: Path) -> None:
    loader = load(toy_meta, f"toy:{name}", pack_size=1200)
    whole = batches(loader)
    assert len(whole) == len(loader)
    media = 0
    for batch in whole:
        pieces = batch.microbatches
        assert sum((piece.rows for piece in pieces), ()) == batch.rows
        for label, value in batch.items():
            if not isinstance(value, Tensor):
                continue
            own = [part for piece in pieces if isinstance(part := piece.inputs.get(label), Tensor)]
            declared = batch.fields.get(label, Field(axis="token"))
            media += declared.axis != "token"
            along = Field(axis="token", dim=row_axis(label, value)) if declared.axis == "token" else declared
            assert torch.equal(join([{label: part} for part in own], {label: along})[label], value), label
    assert media
    loader.ledger.check()
    total = loader.ledger.total()
    assert total["trained"] + total["dropped"] == 60


@pytest.mark.parametrize("attention", ["positions", "mask", "varlen"])
def test_what_each_rank_passes_to_a_schedule(attention: str, toy_meta: Path) -> None:
    for batch in batches(load(toy_meta, attention=attention)):
        first, middle, last = (batch.step_inputs(first=place == 0, last=place == 2) for place in range(3))
        assert (set(first), set(middle)) == ({"arg_mbs", "kwarg_mbs"}, {"kwarg_mbs"})
        assert set(last) == {"kwarg_mbs", "target_mbs"}
        assert torch.equal(torch.cat([ids for (ids,) in first["arg_mbs"]]), batch.tensor("input_ids"))
        assert torch.equal(torch.cat(last["target_mbs"]), batch.tensor("shift_labels"))
        for seen, later, piece in zip(first["kwarg_mbs"], middle["kwarg_mbs"], batch.microbatches, strict=True):
            assert not {"input_ids", "labels", "shift_labels"} & seen.keys()
            assert seen.keys() - later.keys() == piece.inputs.keys() & families.find("qwen2_5_vl").fields.keys()
            assert {"position_ids", "use_cache"} <= later.keys()
            assert ("attention_mask" in later) == (attention == "mask")
            if attention == "varlen":
                assert int(later["cu_seq_lens_q"][-1]) == 2 * 400, (
                    "boundaries count from the microbatch's own first row"
                )


def test_an_epoch_that_does_not_come_out_even_ends_with_padding(toy_meta: Path) -> None:
    loader = load(toy_meta, batch_size=8, microbatches=4)
    whole = batches(loader)
    assert len(loader.plan) % 8, "nothing would have to be filled"
    assert {batch.tensor("input_ids").shape for batch in whole} == {(8, 400)}
    last = whole[-1]
    empty = [number for number, row in enumerate(last.rows) if not row]
    assert len(empty) == 8 * len(whole) - len(loader.plan)
    assert bool((last.tensor("shift_labels")[empty] == IGNORE_INDEX).all())
    assert bool((last.tensor("position_ids")[0, empty] == torch.arange(400)).all())
    loader.ledger.check()
    assert loader.ledger.total()["trained"] == 60


def test_every_microbatch_gets_a_placeholder_of_its_own(toy_meta: Path) -> None:
    found = []
    for batch in batches(load(toy_meta, pack_size=150, microbatches=4, placeholder_media=True)):
        for piece in batch.microbatches:
            seen = [document for row in piece.rows for document in row if document.footprints("image", "video")]
            assert seen, "a microbatch for which the vision tower would not run"
            found.append(all(document.key.source == placeholder.SOURCE for document in seen))
    assert True in found
    assert False in found


def test_other_forms_of_a_batch_are_cut_as_well(toy_meta: Path) -> None:
    plain, bytes_ = batches(load(toy_meta)), load(toy_meta, pixels="uint8", num_workers=1)
    for batch, raw in zip(plain, batches(bytes_), strict=True):
        with pytest.raises(ConfigError, match=r"pixel_values.* are bytes still"):
            raw.step_inputs(first=True, last=False)
        copied = pickle.loads(pickle.dumps(bytes_.normalise(raw.to("cpu"))))
        for one, other in zip(batch.microbatches, copied.microbatches, strict=True):
            assert one.inputs.keys() == other.inputs.keys()
            for name, value in one.inputs.items():
                found = other.inputs[name]
                assert torch.equal(value, found) if isinstance(value, Tensor) else value == found, name


def test_numbers_that_do_not_come_out_even_are_refused(toy_meta: Path) -> None:
    with pytest.raises(ConfigError, match="batch_size 6 with 4 microbatches"):
        load(toy_meta, batch_size=6, microbatches=4)
    with pytest.raises(ConfigError, match="microbatches -1"):
        load(toy_meta, microbatches=-1)


def test_a_batch_by_itself_needs_its_table(toy_meta: Path) -> None:
    batch = next(iter(load(toy_meta)))
    with pytest.raises(ExactnessError, match="a tensor 'surprise' that the family does not declare"):
        cut_batch(replace(batch, inputs={**batch.inputs, "surprise": torch.zeros(4, 2)}), 2)
    bare = Batch(inputs=batch.inputs, rows=batch.rows)
    with pytest.raises(ConfigError, match="found a batch without the field table of its family"):
        cut_batch(bare, 2)
    assert len(cut_batch(bare, 2, fields=batch.fields)) == 2


def test_a_wrong_table_is_noticed(toy_meta: Path) -> None:
    """The fault to be seen: a table that says of patches that they are pictures."""
    batch = next(batch for batch in load(toy_meta) if "pixel_values" in batch)
    broken = {**batch.fields, "pixel_values": Field(axis="image")}
    with pytest.raises(ExactnessError, match="media would go to the wrong microbatch"):
        cut_batch(batch, 2, fields=broken)


def test_former_names_say_where_they_are(toy_meta: Path) -> None:
    import lading.microbatch

    with pytest.warns(DeprecationWarning, match=r"lading\.vlm\.media_rows\.row_axes"):
        assert lading.microbatch.row_axes({"labels": torch.zeros(2, 3)}) == {"labels": 0}
    with pytest.raises(AttributeError, match="no attribute 'MEDIA_KEYS'"):
        _ = lading.microbatch.MEDIA_KEYS
