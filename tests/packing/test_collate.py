from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import ConfigError, UnknownName
from lading.family import ATTENTIONS, Attention
from lading.loader import Samples
from lading.microbatch import cut_batch
from lading.packing import build_pack, collate_packs, collate_samples
from lading.packing.masks import additive, block_causal, cumulative_lengths
from lading.records import Encoded, Pack


@pytest.fixture(scope="module")
def packs(toy_samples: Samples) -> list[Pack]:
    facts = toy_samples.facts
    encoded = [toy_samples.encode(index) for index in (0, 1, 25, 50, 51)]
    assert all(isinstance(sample, Encoded) for sample in encoded)
    groups = [encoded[:3], encoded[3:]]
    return [
        build_pack(group, fields=facts.family.table, three_way=facts.three_way, number=number)  # type: ignore[arg-type]
        for number, group in enumerate(groups)
    ]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=5), st.integers(0, 4))
def test_masks_say_the_same_as_a_loop(lengths: list[int], padding: int) -> None:
    ids = torch.tensor([n for n, length in enumerate(lengths, start=1) for _ in range(length)] + [0] * padding)
    mask = block_causal(ids[None])[0, 0]
    for query in range(len(ids)):
        for seen in range(len(ids)):
            assert bool(mask[query, seen]) == (seen <= query and bool(ids[seen] == ids[query]))
    boundaries = cumulative_lengths(ids).tolist()
    assert [b - a for a, b in pairwise(boundaries)] == lengths + ([padding] if padding else [])


def test_an_additive_mask_never_adds_to_what_is_seen() -> None:
    mask = additive(block_causal(torch.tensor([[1, 1, 2]])))
    assert mask[0, 0, 1].tolist() == [0.0, 0.0, torch.finfo(torch.float32).min]


def test_rows_are_padded_and_media_follow(toy_samples: Samples, packs: list[Pack]) -> None:
    facts = toy_samples.facts
    batch = collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token)
    ids = batch.tensor("input_ids")
    assert ids.shape == (2, max(pack.length for pack in packs))
    short = min(packs, key=lambda pack: pack.length)
    row = packs.index(short)
    assert (ids[row, short.length :] == facts.pad_token).all()
    assert (batch.tensor("labels")[row, short.length :] == -100).all()
    assert batch.tensor("position_ids").shape == (4, *ids.shape)
    assert batch.tensor("position_ids")[0, row, short.length] == 0, "padding is a document of its own"
    assert "attention_mask" not in batch
    assert batch["use_cache"] is False
    pixels = [pack.tensors["pixel_values"] for pack in packs if "pixel_values" in pack.tensors]
    assert torch.equal(batch.tensor("pixel_values"), torch.cat(pixels))
    assert batch.rows == tuple(pack.documents for pack in packs)


def test_a_pack_alone_is_handed_on_without_a_copy(toy_samples: Samples, packs: list[Pack]) -> None:
    facts = toy_samples.facts
    batch = collate_packs(packs[:1], fields=facts.family.table, pad_token=facts.pad_token)
    assert batch.tensor("input_ids").shape == (1, packs[0].length)
    assert batch.tensor("position_ids").shape == (4, 1, packs[0].length)
    for name, own in packs[0].tensors.items():
        if name != "document_ids":
            assert batch.tensor(name).data_ptr() == own.data_ptr(), name


def test_a_fixed_length(toy_samples: Samples, packs: list[Pack]) -> None:
    facts = toy_samples.facts
    batch = collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token, length=1000)
    assert batch.tensor("input_ids").shape[1] == 1000
    with pytest.raises(ConfigError, match="wanted at most 5"):
        collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token, length=5)


def test_what_cannot_be_collated_is_said(toy_samples: Samples, packs: list[Pack]) -> None:
    fields = toy_samples.facts.family.table
    with pytest.raises(ConfigError, match="no samples"):
        collate_packs([], fields=fields, pad_token=0)
    with pytest.raises(UnknownName, match="attention 'flsh'"):
        collate_packs(packs, fields=fields, pad_token=0, attention="flsh")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="documents would see each other"):
        collate_samples(packs, fields=fields, pad_token=0)


@pytest.mark.parametrize("attention", ATTENTIONS)
def test_no_name_stands_for_nothing(toy_samples: Samples, packs: list[Pack], attention: Attention) -> None:
    """Whoever asks `"attention_mask" in batch` goes on to use it."""
    fields = toy_samples.facts.family.table
    batch = collate_packs(packs, fields=fields, pad_token=0, attention=attention)
    assert ("attention_mask" in batch) == (attention == "mask")
    for inputs in (batch.inputs, *(piece.inputs for piece in cut_batch(batch, 2, fields=fields))):
        assert [name for name, value in inputs.items() if value is None] == []


def test_a_batch_moves_whole(toy_samples: Samples, packs: list[Pack]) -> None:
    batch = collate_packs(packs, fields=toy_samples.facts.family.table, pad_token=0)
    moved = batch.to("meta")
    assert set(moved.keys()) == set(batch.keys())
    assert moved.tensor("input_ids").device.type == "meta"
    assert "attention_mask" not in moved
    assert moved["use_cache"] is False
    with pytest.raises(KeyError, match="not a tensor"):
        batch.tensor("use_cache")
