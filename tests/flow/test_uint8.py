"""Pixels in bytes, the whole way: the model is fed what its processor would have made, and trains as alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lading import Loader, PixelNormaliser, families, toy
from lading.encode import Encoder
from lading.errors import ConfigError
from lading.loader import Samples, load_processor, read_processor
from lading.microbatch import cut_batch
from lading.packing import build_pack, collate_packs
from lading.records import Batch, Encoded
from lading.sources import open_corpus
from tests.support.alone import loss_alone, losses_packed

TOLERANCE = 1e-5
CAPABLE = tuple(name for name in families.names() if families.find(name).raw is not None)
PIXELS = ("pixel_values", "pixel_values_videos")


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=30)


def assert_same(one: Batch, other: Batch) -> None:
    assert set(one.inputs) == set(other.inputs)
    for name, value in one.items():
        if isinstance(value, torch.Tensor):
            assert value.dtype == other.tensor(name).dtype
            assert torch.allclose(value.float(), other.tensor(name).float(), rtol=0, atol=TOLERANCE), name


def bytes_in(batch: Batch) -> list[str]:
    return [name for name in PIXELS if name in batch and batch.tensor(name).dtype == torch.uint8]


@pytest.mark.parametrize("name", CAPABLE)
def test_packed_in_bytes_equals_alone_by_the_processor(meta: Path, name: str) -> None:
    facts = read_processor(load_processor(f"toy:{name}"))
    assert facts.raw is not None
    corpus = open_corpus(meta)
    in_bytes = Samples(corpus=corpus, encoder=Encoder(facts=facts, pixels="uint8"))
    by_processor = Samples(corpus=corpus, encoder=Encoder(facts=replace(facts, raw=None)))
    model = toy.model(name).eval()
    chosen = [*range(3), *range(12, 15), *range(18, 21), *range(21, 24)]
    encoded = [sample for index in chosen if isinstance(sample := in_bytes.encode(index), Encoded)]
    truth = [sample for index in chosen if isinstance(sample := by_processor.encode(index), Encoded)]
    assert len(encoded) == len(truth) == len(chosen)
    fields = facts.family.table
    pack = build_pack(encoded, fields=fields, three_way=facts.three_way)
    batch = collate_packs([pack], fields=fields, pad_token=facts.pad_token)
    assert bytes_in(batch) == list(PIXELS)
    together = losses_packed(model, PixelNormaliser(facts.raw.scales)(batch))
    alone = [loss_alone(model, sample, facts.processor) for sample in truth]
    assert max(abs(one - other) for one, other in zip(alone, together, strict=True)) <= TOLERANCE


@pytest.mark.parametrize("name", CAPABLE)
@pytest.mark.parametrize("workers", [0, 2])
def test_both_ways_feed_the_model_the_same(meta: Path, name: str, workers: int) -> None:
    options = {"pack_size": 512, "batch_size": 2, "num_workers": workers}
    numbers = Loader(meta, f"toy:{name}", pixels="model", **options)
    in_bytes = Loader(meta, f"toy:{name}", pixels="uint8", **options)
    seen = 0
    for plain, raw in zip(numbers, in_bytes, strict=True):
        assert not bytes_in(plain)
        assert bytes_in(raw) == [pixels for pixels in PIXELS if pixels in plain]
        if "pixel_values" in raw:
            assert raw.tensor("pixel_values").nbytes * 8 == plain.tensor("pixel_values").nbytes
        assert_same(in_bytes.normalise(raw), plain)
        assert_same(numbers.normalise(plain), plain)
        seen += len(bytes_in(raw))
    assert seen


@pytest.mark.parametrize("name", CAPABLE)
def test_bytes_do_not_reach_a_model_by_mistake(meta: Path, name: str) -> None:
    loader = Loader(meta, f"toy:{name}", pack_size=512, pixels="uint8")
    model = toy.model(name)
    batch = next(batch for batch in loader if "pixel_values" in batch)
    with pytest.raises(ConfigError, match="wanted model"):
        model(**batch)
    assert model(**loader.normalise(batch)).loss.isfinite()


def test_microbatches_are_cut_from_bytes(meta: Path) -> None:
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=512, batch_size=2, pixels="uint8")
    fields = loader.samples.facts.family.table
    for batch in loader:
        pieces = len(batch.rows)
        early = cut_batch(loader.normalise(batch), pieces, fields=fields)
        late = [loader.normalise(piece) for piece in cut_batch(batch, pieces, fields=fields)]
        for one, other in zip(early, late, strict=True):
            assert set(one.inputs) == set(other.inputs)
            for pixels in set(PIXELS) & set(one.inputs):
                assert torch.equal(one.inputs[pixels], other.inputs[pixels])


@pytest.mark.parametrize("name", CAPABLE)
def test_a_placeholder_is_in_bytes_too(meta: Path, name: str) -> None:
    talks = meta.parent / "talks.jsonl"
    numbers = Loader(talks, f"toy:{name}", pack_size=256, placeholder_media=True, pixels="model")
    in_bytes = Loader(talks, f"toy:{name}", pack_size=256, placeholder_media=True, pixels="uint8")
    for plain, raw in zip(numbers, in_bytes, strict=True):
        assert bytes_in(raw) == ["pixel_values"]
        assert_same(in_bytes.normalise(raw), plain)


def test_a_family_that_cannot_refuses_before_it_counts(meta: Path) -> None:
    with pytest.raises(ConfigError, match="uint8 pixels for Gemma 3; wanted pixels='model'"):
        Loader(meta, "toy:gemma3", pack_size=512, pixels="uint8")
    with pytest.raises(ConfigError, match="pixels 'float' "):
        Loader(meta, "toy:qwen2_5_vl", pack_size=512, pixels="float")
