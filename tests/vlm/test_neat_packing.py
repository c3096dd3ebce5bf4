"""Packs hold what was planned, train as their documents alone would, and lose nothing."""

import logging
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils.data import DataLoader, DistributedSampler, Subset

from lading import toy
from lading.encode import Encoder
from lading.errors import ConfigError, TooManyFailures, UnknownName
from lading.fields import is_count
from lading.ledger import Ledger
from lading.loader import Samples, read_processor
from lading.packing import document_positions
from lading.packing.masks import additive, block_causal
from lading.plan.stats import straggler_factor
from lading.records import Encoded
from lading.sources import open_corpus
from lading.tensors import split
from lading.vlm import collate_fns
from lading.vlm.datasets import PreTokenizedDatasetWrapper, RobustDatasetWrapper, make_meta_dataset
from lading.vlm.neat_packing_vlm import (
    MEDIA_KEYS,
    PackedDatasetWrapper,
    _build_packed_vlm_sample,
    _compute_mrope_position_ids,
    _estimate_image_tokens,
    _estimate_sample_length,
    _estimate_video_tokens,
    _shift_sample,
    greedy_knapsack_vt_balanced,
    neat_pack_dataset_vlm,
)
from lading.vlm.padded_batches import as_inputs
from lading.vlm.planning import tokenising
from lading.vlm.samplers import LengthGroupedSampler

PACK = 300


def sample(*ids: int, **more: Any) -> dict[str, Any]:
    labels = torch.tensor(ids)
    return {"input_ids": torch.tensor(ids), "labels": labels.where(labels > 2, torch.tensor(-100)), **more}


class Listed:
    """Samples of given lengths, some of which fail; each is filled with its own number."""

    def __init__(self, lengths: list[int], bad: tuple[int, ...] = ()) -> None:
        self.lengths, self.bad = lengths, bad
        self.opened = 0

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> dict[str, Any]:
        self.opened += 1
        if index in self.bad:
            raise OSError(f"no sample {index}")
        return sample(*[index + 10] * (self.lengths[index] + 1))


def raw(lengths: list[int]) -> list[dict[str, Any]]:
    """Examples that seem to have these lengths."""
    return [{"conversation": [], "_text_tokens": length, "_media_tokens": 0} for length in lengths]


def documents(pack: dict[str, Any]) -> list[list[int]]:
    """The ids of each document, found by the indexed mask."""
    mask = pack["attention_mask"]
    return [pack["input_ids"][mask == place].tolist() for place in range(1, int(mask.max()) + 1)]


@pytest.fixture(scope="module")
def wrapper(toy_meta: Path) -> PreTokenizedDatasetWrapper:
    return PreTokenizedDatasetWrapper(make_meta_dataset(toy_meta), toy.processor("qwen2_5_vl"))


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30)), max_size=60))
def test_every_sample_is_in_one_bin_and_bins_are_in_order(samples: list[tuple[int, int]]) -> None:
    lengths, visual = [length for length, _ in samples], [tokens for _, tokens in samples]
    bins = greedy_knapsack_vt_balanced(lengths, 50, visual)
    assert sorted(place for members in bins for place in members) == list(range(len(samples)))
    assert all(0 < sum(lengths[place] for place in members) <= 50 for members in bins)
    seen = [sum(visual[place] for place in members) for members in bins]
    assert seen == sorted(seen, reverse=True)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(1, 4), st.data())
def test_no_pack_is_too_long_and_none_is_lost_when_lengths_were_guessed(
    lengths: list[int], world_size: int, data: st.DataObject
) -> None:
    guesses = [max(1, length + data.draw(st.integers(-15, 15))) for length in lengths]
    packed = neat_pack_dataset_vlm(Listed(lengths), 30, ds_raw=raw(guesses))
    packed.set_epoch(2, world_size=world_size)
    fits = [place for place, length in enumerate(lengths) if length <= 30]
    if not fits:
        with pytest.raises(TooManyFailures):
            packed[0]
        return
    trained: list[int] = []
    for number in range(len(packed)):
        pack = packed[number]
        assert len(pack["input_ids"]) <= 30
        members = [document[0] - 10 for document in documents(pack)]
        assert [len(document) for document in documents(pack)] == [lengths[place] for place in members]
        trained += members
    ledger = packed.account(range(len(packed)))
    ledger.check()
    carried = packed.carry()
    rest = [document[0] - 10 for pack in carried or () for document in documents(pack)]
    assert set(trained) | set(rest) == set(fits)
    assert not set(trained) & set(rest)
    named = {entry["index"] for entry in ledger.entries()}
    assert set(range(len(lengths))) - set(trained) <= named, "what was not trained on has a name"


def test_the_plan_opens_nothing() -> None:
    inner = Listed([5] * 40)
    packed = neat_pack_dataset_vlm(inner, 30, ds_raw=raw([5] * 40))
    assert inner.opened == 0
    assert len(packed) == 7
    _ = packed[0]
    assert inner.opened == 6


def test_exact_lengths_fill_packs_as_planned(wrapper: PreTokenizedDatasetWrapper) -> None:
    packed = neat_pack_dataset_vlm(wrapper, PACK)
    fields = wrapper.encoder.facts.family.table
    found: list[int] = []
    for number in range(len(packed)):
        pack = packed[number]
        assert len(pack["input_ids"]) <= PACK
        members = packed.bins[number]
        found += members
        encoded = [wrapper.encoded(index) for index in members]
        shifted = [_shift_sample(as_inputs(one)) for one in encoded]
        assert documents(pack) == [one["input_ids"].tolist() for one in shifted]
        boundaries = np.cumsum([len(one["input_ids"]) for one in shifted])[:-1].tolist()
        pieces = torch.tensor_split(pack["labels"], boundaries)
        assert all(torch.equal(piece, one["labels"]) for piece, one in zip(pieces, shifted, strict=True))
        # Three-way positions without a model to ask: the family knows them.
        for piece, one in zip(torch.tensor_split(pack["position_ids"], boundaries, dim=-1), encoded, strict=True):
            own = document_positions(one.document, wrapper.encoder.facts.three_way)[1:]
            assert torch.equal(piece, own[:, : piece.shape[-1]])
        media = {name: tensor for name, tensor in pack.items() if name in MEDIA_KEYS}
        back = split(media, [one.document for one in encoded], fields)
        for piece, one in zip(back, encoded, strict=True):
            assert set(piece) == set(one.tensors) & set(MEDIA_KEYS)
            assert all(torch.equal(tensor, one.tensors[name]) for name, tensor in piece.items())
        images = [len(one.document.footprints("image")) for one in encoded]
        assert pack.get("n_images_per_sample", torch.zeros(len(members))).tolist() == images
    assert sorted(found) == list(range(len(wrapper)))
    packed.account(range(len(packed))).check()
    assert packed.carry() is None


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl", "qwen3_omni"])
def test_positions_are_the_models_own_for_each_document(family: str, toy_meta: Path) -> None:
    model = toy.model(family)
    get_rope_index = (model if family == "qwen3_omni" else model.model).get_rope_index
    samples = Samples(corpus=open_corpus(toy_meta), encoder=Encoder.of(toy.processor(family)))
    chosen = [index for index in (0, 25, 37, 50) if isinstance(samples.encode(index), Encoded)]
    assert len(chosen) > 2

    class Inner:
        def __len__(self) -> int:
            return len(chosen)

        def __getitem__(self, place: int) -> dict[str, Tensor]:
            encoded = samples.encode(chosen[place])
            assert isinstance(encoded, Encoded)
            return as_inputs(encoded)

    packed = PackedDatasetWrapper(Inner(), [list(range(len(chosen)))], 2000, get_rope_index=get_rope_index)
    assert packed.has_mrope
    pack = packed[0]
    start = 0
    for place, index in enumerate(chosen):
        alone = Inner()[place]
        encoded = samples.encode(index)
        assert isinstance(encoded, Encoded)
        types = torch.zeros_like(alone["input_ids"])
        for span in encoded.document.media:
            for first, last in span.runs:
                types[first:last] = 1 if span.footprint.kind == "image" else 2
        asked = {
            name: alone[name] for name in ("image_grid_thw", "video_grid_thw", "second_per_grid_ts") if name in alone
        }
        if family == "qwen3_omni":
            asked["second_per_grids"] = alone.get("video_second_per_grid")
            asked["attention_mask"] = alone["attention_mask"][None]
        else:
            asked["mm_token_type_ids"] = types[None]
        expected = get_rope_index(input_ids=alone["input_ids"][None], **asked)[0][:, 0]
        found = _compute_mrope_position_ids(alone, get_rope_index)
        assert found is not None
        assert torch.equal(found, expected)
        tokens = len(types) - 1
        assert torch.equal(pack["position_ids"][:, start : start + tokens], expected[:, :tokens])
        start += tokens
    assert start == len(pack["input_ids"])


def test_a_packed_document_is_seen_as_if_it_were_alone(wrapper: PreTokenizedDatasetWrapper) -> None:
    torch.manual_seed(0)
    model = toy.model("qwen2_5_vl").eval()
    places = [0, 50, 25, 37]
    packed = PackedDatasetWrapper(
        wrapper, [places, *([place] for place in places)], 2000, 0, model.model.get_rope_index
    )

    def logits(pack: dict[str, Any]) -> Tensor:
        media = {name: value for name, value in pack.items() if name in MEDIA_KEYS}
        mask = additive(block_causal(pack["attention_mask"][None]))
        with torch.no_grad():
            made = model(
                input_ids=pack["input_ids"][None],
                position_ids=pack["position_ids"][:, None],
                attention_mask=mask,
                use_cache=False,
                **media,
            )
        return made.logits[0]

    together = logits(packed[0])
    apart = [logits(packed[number]) for number in range(1, len(packed))]
    assert torch.allclose(together, torch.vstack(apart), atol=1e-5)


@pytest.mark.parametrize("family", toy.recipes())
def test_media_of_every_family_are_joined_by_its_table(family: str, toy_meta: Path) -> None:
    facts = read_processor(toy.processor(family))
    samples = Samples(corpus=open_corpus(toy_meta), encoder=Encoder(facts=facts))
    encoded = [one for one in map(samples.encode, (0, 50, 26, 5, 27)) if isinstance(one, Encoded)]
    assert sum(bool(one.document.media) for one in encoded) > 1
    shifted = [_shift_sample(as_inputs(one), media_tokens=facts.tokeniser.pads) for one in encoded]
    for fields in (facts.family.table, None):
        pack = _build_packed_vlm_sample(shifted, 10_000, 0, fields=fields)
        media = {name: tensor for name, tensor in pack.items() if name in MEDIA_KEYS}
        back = split(media, [one.document for one in encoded], facts.family.table)
        for piece, one in zip(back, encoded, strict=True):
            assert all(torch.equal(tensor, one.tensors[name]) for name, tensor in piece.items())
            assert set(piece) == set(one.tensors) & set(MEDIA_KEYS)


def heard(seconds: float) -> dict[str, Any]:
    """An example with a tone in it."""
    tone = np.sin(440 * np.linspace(0, seconds, int(16000 * seconds), dtype=np.float32))
    asked = [{"type": "audio", "audio": (tone, 16000)}, {"type": "text", "text": "What is it?"}]
    return {"conversation": [{"role": "user", "content": asked}, {"role": "assistant", "content": "A tone."}]}


@pytest.mark.parametrize("family", ["qwen3_omni", "phi4_mm"])
def test_sounds_are_packed_with_their_masks_and_positions(family: str) -> None:
    inner = PreTokenizedDatasetWrapper([heard(1.2), heard(2.5), heard(0.4)], toy.processor(family))
    get_rope_index = toy.model(family).get_rope_index if family == "qwen3_omni" else None
    packed = neat_pack_dataset_vlm(inner, 4000, get_rope_index=get_rope_index)
    (members,), pack = packed.bins, packed[0]
    encoded = [inner.encoded(place) for place in members]
    assert documents(pack) == [one.tensors["input_ids"][:-1].tolist() for one in encoded]
    media = {name: tensor for name, tensor in pack.items() if name in MEDIA_KEYS}
    back = split(media, [one.document for one in encoded], inner.encoder.facts.family.table)
    for piece, one in zip(back, encoded, strict=True):
        assert set(piece) == set(one.tensors) & set(MEDIA_KEYS)
        assert all(torch.equal(tensor, one.tensors[name]) for name, tensor in piece.items())
    assert pack["n_audios_per_sample"].tolist() == [1, 1, 1]
    if get_rope_index is None:
        return
    pieces = torch.tensor_split(
        pack["position_ids"], np.cumsum([len(ids) for ids in documents(pack)])[:-1].tolist(), -1
    )
    for piece, one in zip(pieces, map(as_inputs, encoded), strict=True):
        heard_frames = one["feature_attention_mask"].sum(dim=-1)
        rows = {name: one[name][None] for name in ("input_ids", "attention_mask")}
        assert torch.equal(piece, get_rope_index(**rows, audio_seqlens=heard_frames)[0][:, 0, :-1])


def test_sound_is_stretched_to_the_longest() -> None:
    parts = [
        _shift_sample(
            sample(
                5,
                6,
                7,
                input_features=torch.ones(1, 4, frames),
                feature_attention_mask=torch.ones(1, frames, dtype=torch.long),
                video_second_per_grid=[0.5],
            )
        )
        for frames in (3, 8)
    ]
    pack = _build_packed_vlm_sample(parts, 100, 0)
    assert pack["input_features"].shape == (2, 4, 8)
    assert pack["feature_attention_mask"].sum(dim=1).tolist() == [3, 8]
    assert pack["video_second_per_grid"].tolist() == [0.5, 0.5]


def test_media_keys_begin_as_the_page_says_and_hold_every_family() -> None:
    assert MEDIA_KEYS[:4] == ("pixel_values", "image_grid_thw", "image_position_ids", "pixel_values_videos")
    assert len(set(MEDIA_KEYS)) == len(MEDIA_KEYS)
    for family in map(toy.processor, ("qwen2_5_vl", "smolvlm", "step3p7", "qwen3_omni", "phi4_mm")):
        assert set(read_processor(family).family.fields) <= set(MEDIA_KEYS)
    assert {"second_per_grid_ts", "video_grid_thw", "feature_attention_mask"} <= set(MEDIA_KEYS)


def test_the_shift_and_a_sample_that_ends_in_a_medium() -> None:
    plain = _shift_sample(sample(1, 5, 6, 7))
    assert plain["input_ids"].tolist() == [1, 5, 6]
    assert plain["labels"].tolist() == [5, 6, 7]
    picture = {"image_grid_thw": torch.tensor([[1, 2, 4]]), "pixel_values": torch.zeros(8, 3)}
    for more, known in (({}, (2,)), ({"mm_token_type_ids": torch.tensor([0, 0, 1, 1])}, ()), ({}, ())):
        kept = _shift_sample(sample(5, 6, 2, 2, **picture, **more), media_tokens=known)
        assert kept["input_ids"].tolist() == [5, 6, 2, 2]
        assert kept["labels"].tolist() == [6, -100, -100, -100]
    cut = _shift_sample(sample(2, 2, 5, 1, **picture))
    assert cut["input_ids"].tolist() == [2, 2, 5]
    three = _shift_sample({**sample(5, 6, 7), "position_ids": torch.zeros(3, 3)}, has_mrope=True)
    assert three["position_ids"].shape == (3, 2)


def test_what_a_sample_hides_stays_hidden() -> None:
    hidden = sample(5, 6, 7, 8, attention_mask=torch.tensor([1, 0, 0, 1]))
    pack = _build_packed_vlm_sample([_shift_sample(sample(5, 6)), _shift_sample(hidden)], 10, 0)
    assert pack["attention_mask"].tolist() == [1, 2, 0, 0]
    assert pack["position_ids"].tolist() == [0, 0, 1, 2]


def test_what_fails_is_replaced_by_rule_and_by_name() -> None:
    def packed(**more: Any) -> PackedDatasetWrapper:
        return PackedDatasetWrapper(Listed([3] * 30, bad=(4, 5)), [[3, 4], [6, 7]], 10, **more)

    first = packed()
    stand_in = documents(first[0])[1][0] - 10
    assert stand_in not in (4, 5)
    assert documents(packed()[0]) == documents(first[0])
    (entry,) = first.account([0, 1]).entries()
    assert (entry["index"], entry["fate"]) == (4, "replaced")
    assert entry["by"] == [f"Listed#{stand_in} (Listed[{stand_in}])"]
    drawn = {tuple(documents(packed(seed=seed)[0])[1]) for seed in range(5)}
    assert len(drawn) > 2
    with pytest.raises(TooManyFailures, match="3 attempts that all failed"):
        PackedDatasetWrapper(Listed([3] * 9, bad=tuple(range(9))), [[1]], 10, max_retries=2)[0]


def test_a_pack_in_which_nothing_fits_is_replaced_by_another_and_its_samples_are_named() -> None:
    packed = PackedDatasetWrapper(Listed([3, 50, 4]), [[1], [0, 2]], 10)
    assert documents(packed[0]) == documents(packed[1])
    ledger = packed.account(range(2))
    (entry,) = ledger.entries()
    assert (entry["index"], entry["fate"], entry["reason"]) == (1, "replaced", "too_long")
    assert ledger.total()["trained"] == 2


def test_a_failing_collate_draws_other_packs_and_names_the_samples() -> None:
    packed = PackedDatasetWrapper(Listed([3] * 8), [[place, place + 1] for place in range(0, 8, 2)], 10)

    def picky(packs: list[dict[str, Any]]) -> list[int]:
        first = [documents(pack)[0][0] - 10 for pack in packs]
        if 2 in first:
            raise ValueError("not this one")
        return first

    loader = DataLoader(packed, batch_size=1, collate_fn=packed.robust_collate(picky))
    batches = [batch[0] for batch in loader]
    assert len(batches) == 4
    assert 2 not in batches
    assert {entry["index"] for entry in packed.account(range(4)).entries()} == {2, 3}


def test_workers_report_what_was_left_over(caplog: pytest.LogCaptureFixture) -> None:
    lengths = [9, 8, 7, 6, 5, 9, 8, 7]
    packed = neat_pack_dataset_vlm(Listed(lengths), 16, ds_raw=raw([4] * 8))
    loader = DataLoader(packed, batch_size=None, num_workers=2)
    trained = {document[0] - 10 for pack in loader for document in documents(pack)}
    ledger = packed.account(range(len(packed)))
    ledger.check()
    left = {entry["index"] for entry in ledger.entries()}
    assert left
    assert trained | left == set(range(8))
    carried = packed.carry()
    assert carried is not None
    assert {document[0] - 10 for pack in carried for document in documents(pack)} == left
    with caplog.at_level(logging.WARNING):
        _ = packed[0]
    assert "left over Listed#" in caplog.text


def test_the_balance_survives_epochs_and_ranks() -> None:
    random = np.random.default_rng(3)
    lengths = random.integers(5, 60, 3000).tolist()
    visual = (np.array(lengths) * random.random(3000) * (random.random(3000) < 0.4)).astype(int).tolist()
    bins = greedy_knapsack_vt_balanced(lengths, 120, visual)
    packed = PackedDatasetWrapper(Listed(lengths), bins, 120)
    costs = {tuple(members): float(sum(visual[place] for place in members)) for members in bins}

    def factor(shuffle: bool) -> float:
        ranks = [
            DistributedSampler(packed, num_replicas=8, rank=rank, shuffle=shuffle, drop_last=True) for rank in range(8)
        ]
        steps = [[costs[tuple(packed._members(number))] for number in step] for step in zip(*ranks, strict=True)]
        return straggler_factor(np.array(steps))

    given_order = factor(shuffle=False)
    packed.set_epoch(5, world_size=8)
    blocks, plain = factor(shuffle=False), factor(shuffle=True)
    assert [packed._members(number) for number in range(len(packed))] != bins
    assert blocks == pytest.approx(given_order, rel=1e-2)
    assert blocks - 1 < (plain - 1) / 5


def test_epochs_reach_workers_that_live_on() -> None:
    packed = PackedDatasetWrapper(Listed([3] * 20), [[place] for place in range(20)], 10)
    loader = DataLoader(packed, batch_size=None, num_workers=1, persistent_workers=True)
    orders = []
    for epoch in range(3):
        packed.set_epoch(epoch, world_size=2)
        orders.append([int(pack["input_ids"][0]) - 10 for pack in loader])
        assert sorted(orders[-1]) == list(range(20))
        assert orders[-1] == [packed._members(number)[0] for number in range(20)]
    assert orders[0] != orders[1] != orders[2]


def test_it_travels_to_a_spawned_worker(wrapper: PreTokenizedDatasetWrapper) -> None:
    packed = neat_pack_dataset_vlm(wrapper, PACK)
    packed.set_epoch(1)
    copy = pickle.loads(pickle.dumps(packed))
    assert torch.equal(copy[1]["input_ids"], packed[1]["input_ids"])


def test_long_samples(caplog: pytest.LogCaptureFixture) -> None:
    inner, guesses = Listed([3, 40, 4]), raw([3, 40, 4])
    with caplog.at_level(logging.WARNING):
        packed = neat_pack_dataset_vlm(inner, 10, drop_long_samples=True, ds_raw=guesses)
    assert sorted(place for members in packed.bins for place in members) == [0, 2]
    assert "left out 1 of 3 samples" in caplog.text
    packed.account(range(len(packed))).check()
    assert packed.carry() is None, "it was to be left out"
    kept = neat_pack_dataset_vlm(Listed([3, 9, 4]), 10, ds_raw=guesses)
    assert sorted(place for members in kept.bins for place in members) == [0, 1, 2], "a guess may be too high"
    tokenised = [inner[place] for place in range(3)]
    with pytest.raises(ConfigError, match="1 samples longer than a pack: 1"):
        neat_pack_dataset_vlm(tokenised, 10)
    assert [sorted(members) for members in neat_pack_dataset_vlm(tokenised, 10, drop_long_samples=True).bins] == [
        [0, 2]
    ]


def test_ratio_and_number_of_packs(caplog: pytest.LogCaptureFixture) -> None:
    packed = neat_pack_dataset_vlm(Listed([5] * 12), 20, ds_raw=raw([5] * 12), packing_ratio=0.8)
    assert [len(members) for members in packed.bins] == [3] * 4
    with caplog.at_level(logging.WARNING):
        capped = neat_pack_dataset_vlm(Listed([5] * 12), 20, ds_raw=raw([5] * 12), max_packs=2)
    assert len(capped) == 2
    assert "left out 4 of 12 samples" in caplog.text
    assert "first 2 packs (max_packs)" in caplog.text


def test_balance_may_be_switched_off_and_needs_media() -> None:
    guesses = [{**one, "_text_tokens": 5, "_media_tokens": 5 * (place % 2)} for place, one in enumerate(raw([0] * 6))]
    seen = [
        [sum(guesses[place]["_media_tokens"] for place in members) for members in packed.bins]
        for packed in (
            neat_pack_dataset_vlm(Listed([9] * 6), 10, ds_raw=guesses),
            neat_pack_dataset_vlm(Listed([9] * 6), 10, ds_raw=guesses, balance_media_tokens=False),
        )
    ]
    assert seen[0] == sorted(seen[0], reverse=True)
    assert sum(map(sum, seen)) == 2 * 15


def test_a_ledger_of_the_corpus_is_written_to(toy_meta: Path, tmp_path: Path) -> None:
    examples = make_meta_dataset(toy_meta, shard_data=True, rank=1, world_size=2, lazy=True)
    wrapper = PreTokenizedDatasetWrapper(examples, toy.processor("qwen2_5_vl"))
    ledger = Ledger(sources=("all",), source=np.zeros(60, dtype=np.int32))
    packed = neat_pack_dataset_vlm(wrapper, 150, drop_long_samples=True, ledger=ledger)
    account = packed.account(range(len(packed)))
    assert account is ledger
    numbers = {wrapper.key(place).index for members in packed.bins for place in members}
    assert account.total()["trained"] == len(numbers)
    left = {wrapper.key(place).index for place in range(len(wrapper))} - numbers
    assert {entry["index"] for entry in account.entries()} == left
    assert left


def test_exact_lengths_may_be_asked_for(wrapper: PreTokenizedDatasetWrapper) -> None:
    examples = wrapper.dataset
    exact = neat_pack_dataset_vlm(wrapper, PACK).bins
    assert neat_pack_dataset_vlm(wrapper, PACK, ds_raw=examples, exact_lengths=True).bins == exact
    robust = RobustDatasetWrapper(wrapper)
    asked: dict[str, Any] = {"processor": wrapper.processor, "exact_lengths": True}
    assert neat_pack_dataset_vlm(robust, PACK, **asked).bins == exact
    assert neat_pack_dataset_vlm(robust, PACK, **asked, ds_raw=examples).bins == exact
    assert neat_pack_dataset_vlm(wrapper, PACK, exact_lengths=False).bins != exact


def test_wrappers_that_change_no_sample_are_looked_through(wrapper: PreTokenizedDatasetWrapper) -> None:
    """Exact lengths, three-way positions and counts are those of the samples, whoever chose or guards them."""
    chosen = list(range(1, len(wrapper), 2))
    plain = neat_pack_dataset_vlm(wrapper, PACK)
    for dataset, places in (
        (RobustDatasetWrapper(wrapper), range(len(wrapper))),
        (Subset(wrapper, chosen), chosen),
        (Subset(RobustDatasetWrapper(Subset(wrapper, chosen)), range(3, len(chosen))), chosen[3:]),
    ):
        packed = neat_pack_dataset_vlm(dataset, PACK)
        if len(places) == len(wrapper):
            assert packed.bins == plain.bins
        pack, members = packed[0], packed.bins[0]
        wanted = [wrapper[places[place]]["input_ids"][:-1].tolist() for place in members]
        assert documents(pack) == wanted
        assert pack["position_ids"].shape[0] == 3
        assert any(map(is_count, pack))
        assert packed.samples.key(2).where == wrapper.key(places[2]).where


def test_a_wrapper_that_may_change_samples_is_asked_for_them(wrapper: PreTokenizedDatasetWrapper) -> None:
    class Silenced(Subset[Any]):
        """Nothing of its samples is learnt."""

        def __getitem__(self, index: int) -> Any:
            own = super().__getitem__(index)
            return {**own, "labels": torch.full_like(own["labels"], -100)}

        def __getitems__(self, indices: list[int]) -> list[Any]:
            return [self[index] for index in indices]

    class Guarded(RobustDatasetWrapper):
        def __getitem__(self, index: int) -> Any:
            return super().__getitem__(index)

    assert tokenising(Subset(wrapper, [0])) is not None
    assert tokenising(RobustDatasetWrapper(wrapper)) is wrapper
    assert tokenising(Guarded(wrapper)) is None
    packed = neat_pack_dataset_vlm(Silenced(wrapper, [50, 51, 52]), 600)
    assert (packed[0]["labels"] == -100).all()


def test_that_lengths_are_guessed_is_said(caplog: pytest.LogCaptureFixture) -> None:
    class Elsewhere:
        """A wrapper that nobody knows."""

        def __init__(self, dataset: Any) -> None:
            self.dataset = dataset

        def __len__(self) -> int:
            return len(self.dataset)

        def __getitem__(self, index: int) -> Any:
            return self.dataset[index]

    examples = [{"conversation": [{"role": "user", "content": "Hm? " * 9}]}] * 3
    neat_pack_dataset_vlm(Elsewhere(examples), 100)
    assert "lengths of a Elsewhere are estimated" in caplog.text
    caplog.clear()
    neat_pack_dataset_vlm(Elsewhere(examples), 100, ds_raw=examples)
    assert "estimated" not in caplog.text, "it was asked for"


def test_estimates_as_the_page_says() -> None:
    example = {
        "conversation": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "x" * 10}]}],
        "mm_inputs_meta": {"images_meta": [[56, 84]]},
    }
    assert _estimate_sample_length(example) == 503
    numbers = {"patch_size": 14, "merge_size": 2}
    assert _estimate_sample_length(example, image_cfg=numbers, return_media_tokens=True) == (9, 6)
    assert _estimate_sample_length({**example, "_text_tokens": 7}) == 507
    assert _estimate_image_tokens([56, 84], numbers) == 6
    assert _estimate_video_tokens([60, 64, 96, 30.0, 2.0], {"fps": 2.0}) == 12


@pytest.mark.parametrize("family", ["qwen2_5_vl", "qwen3_vl"])
def test_the_numbers_of_either_page_give_the_same_tokens(family: str) -> None:
    own = toy.processor(family)
    numbers = collate_fns._extract_image_config(own)
    known = LengthGroupedSampler._extract_image_config(own)
    assert known is not None
    assert _estimate_image_tokens([512, 300], numbers) == _estimate_image_tokens([512, 300], known)
    assert _estimate_image_tokens([64, 96], {"factor": 32, "min_pixels": 32 * 32}) == 6


def test_bad_input() -> None:
    good = _shift_sample(sample(5, 6, 7))
    with pytest.raises(ConfigError, match="0 samples of 0 tokens"):
        _build_packed_vlm_sample([], 10, 0)
    with pytest.raises(ConfigError, match="2 samples of 4 tokens; wanted at least one sample, and at most 3"):
        _build_packed_vlm_sample([good, good], 3, 0)
    with pytest.raises(UnknownName, match="did you mean 'pixel_values'"):
        _shift_sample(sample(5, 6, pixel_value=torch.zeros(1)))
    with pytest.raises(ConfigError, match="wanted input_ids and labels"):
        _shift_sample({"input_ids": torch.tensor([5, 6])})
    with pytest.raises(ConfigError, match="one number for all"):
        _shift_sample(sample(5, 6, attention_mask=torch.ones(3)))
    with pytest.raises(ConfigError, match="no model's method"):
        _compute_mrope_position_ids(sample(5, 6), lambda input_ids, mm_token_type_ids: (input_ids, None))
    assert _compute_mrope_position_ids(sample(5, 6), None) is None
    for wrong in ([[9]], [[]], [[-1]]):
        with pytest.raises(ConfigError, match="numbers from 0 to 2"):
            PackedDatasetWrapper(Listed([3] * 3), wrong, 10)
    with pytest.raises(ConfigError, match="pack_size 0"):
        PackedDatasetWrapper(Listed([3] * 3), [[0]], 0)
    with pytest.raises(ConfigError, match="without examples"):
        PackedDatasetWrapper(Listed([3] * 3), [], 10)
    with pytest.raises(ConfigError, match="0 lengths for 0 samples"):
        neat_pack_dataset_vlm(Listed([]), 10, ds_raw=[])
    with pytest.raises(ConfigError, match="2 lengths for 3 samples"):
        neat_pack_dataset_vlm(Listed([3] * 3), 10, ds_raw=raw([3, 3]))
    for options in ({"pack_size": 0}, {"packing_ratio": 0.0}, {"max_packs": 0}):
        with pytest.raises(ConfigError, match="found"):
            neat_pack_dataset_vlm(Listed([3]), **{"pack_size": 10, "ds_raw": raw([3]), **options})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="exact_lengths=True and a Listed"):
        neat_pack_dataset_vlm(Listed([3]), 10, exact_lengths=True)
    packed = PackedDatasetWrapper(Listed([3]), [[0]], 10)
    with pytest.raises(ConfigError, match="world size 0"):
        packed.set_epoch(0, world_size=0)
    with pytest.raises(ConfigError, match="epoch -1"):
        packed.set_epoch(-1)
