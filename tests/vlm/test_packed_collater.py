"""The packed collater: every mask says the same, and the model agrees with each document alone."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from lading import toy
from lading.encode import Encoder
from lading.errors import ConfigError, UnknownName
from lading.loader import Samples
from lading.packing import build_pack
from lading.records import Encoded
from lading.vlm.collate_fns import neat_packed_vlm_collater


@pytest.fixture(scope="module")
def packs(toy_samples: Samples) -> list[dict[str, Any]]:
    """Packs as dictionaries, the way `PackedDatasetWrapper` gives them."""
    facts = toy_samples.facts
    made = []
    for group in ((0, 25, 50), (51, 1)):
        encoded = [sample for sample in map(toy_samples.encode, group) if isinstance(sample, Encoded)]
        pack = build_pack(encoded, fields=facts.family.table, three_way=facts.three_way)
        tensors = dict(pack.tensors)
        tensors["attention_mask"] = tensors.pop("document_ids")
        tensors["position_ids"] = tensors["position_ids"][1:]
        made.append(tensors)
    return made


def test_masks_of_every_kind_say_the_same(packs: list[dict[str, Any]]) -> None:
    index = neat_packed_vlm_collater(packs, attn_implementation="flash_attention_2")["attention_mask"]
    assert index.ndim == 2
    dense = neat_packed_vlm_collater(packs, attn_implementation="sdpa")["attention_mask"]
    assert dense.dtype == torch.bool
    for row in range(len(packs)):
        for query in range(0, index.shape[1], 7):
            sees = torch.zeros(index.shape[1], dtype=torch.bool)
            sees[: query + 1] = index[row, : query + 1] == index[row, query]
            assert torch.equal(dense[row, 0, query], sees)
    added = neat_packed_vlm_collater(packs, attn_implementation="eager")["attention_mask"]
    assert torch.equal(added == 0, dense)
    block = neat_packed_vlm_collater(packs, attn_implementation="flex_attention")["attention_mask"]
    assert block.shape[-2:] == dense.shape[-2:]
    rows, length = index.shape
    sees = torch.stack(
        [
            torch.stack(
                [
                    block.mask_mod(torch.tensor(row), torch.tensor(0), torch.tensor(query), torch.arange(length))
                    for query in range(0, length, 11)
                ]
            )
            for row in range(rows)
        ]
    )
    assert torch.equal(sees, dense[:, 0, ::11])
    lengths = neat_packed_vlm_collater(packs, attn_implementation="cu_seqlens")
    assert "attention_mask" not in lengths
    flat = (index + torch.arange(rows)[:, None] * 1000).flatten()
    assert lengths["cu_seq_lens_q"].tolist() == [0, *((flat.diff() != 0).nonzero().flatten() + 1).tolist(), len(flat)]
    assert lengths["max_length_q"] == lengths["cu_seq_lens_q"].diff().max()


def test_the_model_sees_each_document_alone(packs: list[dict[str, Any]], toy_samples: Samples) -> None:
    model = toy.model("qwen2_5_vl").eval()
    for implementation in ("sdpa", "eager"):
        model.set_attn_implementation(implementation)
        batch = neat_packed_vlm_collater(
            packs, padding_idx=toy_samples.facts.pad_token, attn_implementation=implementation
        )
        alone = neat_packed_vlm_collater(
            packs[1:], padding_idx=toy_samples.facts.pad_token, attn_implementation=implementation
        )
        with torch.no_grad():
            together = model(**batch, shift_labels=batch["labels"], use_cache=False).logits
            single = model(**alone, shift_labels=alone["labels"], use_cache=False).logits
        width = alone["input_ids"].shape[1]
        assert (together[1, :width] - single[0]).abs().max() <= 1e-5


def test_lengths(packs: list[dict[str, Any]]) -> None:
    longest = max(len(pack["input_ids"]) for pack in packs)
    assert neat_packed_vlm_collater(packs)["input_ids"].shape == (2, longest)
    assert neat_packed_vlm_collater(packs, max_length=900)["labels"].shape == (2, 900)
    short = min(packs, key=lambda pack: len(pack["input_ids"]))
    padded = neat_packed_vlm_collater([short], padding_idx=7, max_length=900)
    assert (padded["input_ids"][0, len(short["input_ids"]) :] == 7).all()
    assert (padded["labels"][0, len(short["input_ids"]) :] == -100).all()


@pytest.mark.parametrize(
    ("change", "options", "error", "said"),
    [
        (
            {},
            {"attn_implementation": "flash"},
            UnknownName,
            "did you mean 'flash_attention_2'|attn_implementation 'flash'",
        ),
        ({}, {"max_length": 4}, ConfigError, "at most max_length, 4"),
        ({"input_ids": None}, {}, ConfigError, "a pack without input_ids"),
        ({"mystery": torch.zeros(2)}, {}, UnknownName, "mystery"),
    ],
)
def test_what_cannot_be_collated(
    packs: list[dict[str, Any]], change: dict[str, Any], options: dict[str, Any], error: type[Exception], said: str
) -> None:
    pack = {**packs[0], **change}
    with pytest.raises(error, match=said):
        neat_packed_vlm_collater([{k: v for k, v in pack.items() if v is not None}], **options)


def test_no_packs(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no packs"):
        neat_packed_vlm_collater([])


def test_counts_of_a_row_are_those_of_its_documents(packs: list[dict[str, Any]]) -> None:
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    both = [
        {**packs[0], "n_images_per_sample": torch.tensor([1, 2, 0])},
        {**packs[1], "n_images_per_sample": torch.tensor([0, 1])},
    ]
    rows = [len(pack["image_grid_thw"]) for pack in both]
    both[0]["n_images_per_sample"][1] = rows[0] - 1
    batch = neat_packed_vlm_collater(both)
    assert batch["n_images_per_sample"].tolist() == rows
    chunks = prepare_vlm_media_for_pp(batch, 2, 2)[VLM_PP_MEDIA_KEY]
    for row, pack in enumerate(both):
        assert torch.equal(chunks["pixel_values"][row], pack["pixel_values"])


def test_packs_of_the_front_door_reach_the_right_microbatch(toy_samples: Samples, toy_meta: Path) -> None:
    from lading.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset
    from lading.vlm.neat_packing_vlm import PackedDatasetWrapper
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    wrapper = PreTokenizedDatasetWrapper(make_meta_dataset(toy_meta), toy_samples.facts.processor)
    packed = PackedDatasetWrapper(wrapper, [[0, 1], [50, 51]], pack_size=600)
    batch = neat_packed_vlm_collater([packed[0], packed[1]])
    assert batch["n_images_per_sample"].tolist() == [2, 0]
    chunks = prepare_vlm_media_for_pp(batch, 2, 2)[VLM_PP_MEDIA_KEY]
    assert len(chunks["image_grid_thw"][0]) == 2
    assert chunks["image_grid_thw"][1] is None


@pytest.mark.parametrize("family", toy.recipes())
def test_every_family_of_packs_reaches_the_right_microbatch(family: str, toy_meta: Path) -> None:
    """Tiles of two pictures in one row and of one in the other, and none of a third: by what packs carry."""
    from lading.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset
    from lading.vlm.neat_packing_vlm import PackedDatasetWrapper
    from lading.vlm.pp_media import _VLM_MEDIA_KEYS as MEDIA_KEYS
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    wrapper = PreTokenizedDatasetWrapper(make_meta_dataset(toy_meta), toy.processor(family))
    packed = PackedDatasetWrapper(wrapper, [[0, 50, 1], [26, 51], [52]], pack_size=4000)
    packs = [packed[number] for number in range(3)]
    batch = neat_packed_vlm_collater(packs, attn_implementation="flash_attention_2")
    chunks = prepare_vlm_media_for_pp(batch, 3, 3)[VLM_PP_MEDIA_KEY]
    assert any(name in chunks for name in MEDIA_KEYS)
    for name, own in chunks.items():
        for pack, piece in zip(packs, own, strict=True):
            assert (piece is None) == (name not in pack)
            if piece is not None:
                # In a batch, tiles are padded to as many as any picture has.
                assert torch.equal(piece[tuple(map(slice, pack[name].shape))], pack[name])
                assert len(piece) == len(pack[name])


@pytest.mark.parametrize("family", ["gemma3", "gemma4", "step3p7"])
def test_text_alone_does_not_hide_that_layers_differ(family: str, toy_meta: Path) -> None:
    from lading.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset
    from lading.vlm.neat_packing_vlm import PackedDatasetWrapper

    wrapper = PreTokenizedDatasetWrapper(make_meta_dataset(toy_meta), toy.processor(family))
    pack = PackedDatasetWrapper(wrapper, [[50, 51]], pack_size=4000)[0]
    assert not any(name.startswith("pixel") for name in pack)
    with pytest.raises(ConfigError, match="without layers"):
        neat_packed_vlm_collater([pickle.loads(pickle.dumps(pack))])


def test_a_model_whose_layers_differ_gets_a_mask_for_each() -> None:
    from lading.encode.processor_facts import read_layers
    from lading.loader import read_processor
    from tests.families.test_contract import _talks

    facts = read_processor(toy.processor("gemma3"))
    encoder = Encoder(facts=facts)
    encoded = [encoder.encode(talk) for talk in _talks(facts)]
    model = toy.model("gemma3").eval()

    def pack(members: list[Encoded]) -> dict[str, Any]:
        tensors = dict(build_pack(members, fields=facts.family.table).tensors)
        tensors["attention_mask"] = tensors.pop("document_ids")
        return tensors

    with pytest.raises(ConfigError, match="Gemma 3 without layers"):
        neat_packed_vlm_collater([pack(encoded)])
    layers = read_layers(facts.family, model.config, "mask")
    together = neat_packed_vlm_collater([pack(encoded)], layers=layers)
    with torch.no_grad():
        logits = model(**together, use_cache=False).logits[0]
        start = 0
        for sample in encoded:
            single = neat_packed_vlm_collater([pack([sample])], layers=layers)
            alone = model(**single, use_cache=False).logits[0]
            assert (logits[start : start + len(alone)] - alone).abs().max() <= 1e-5
            start += len(alone)
