"""The first promise: a packed document trains exactly as it would alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lading import families, toy
from lading.encode import Encoder
from lading.encode.processor_facts import read_layers
from lading.family import Attention
from lading.loader import Samples
from lading.packing import build_pack, collate_packs, collate_samples
from lading.records import Dropped, Encoded
from lading.sources import open_corpus
from lading.verify.model import with_large_weights
from tests.support.alone import loss_alone, losses_packed

TOLERANCE = 1e-5
REFUSES_CLIPS = ("gemma4", "kimi_k25")
"""Families whose model class in transformers 5.22 refuses any clip, packed or not: their files say why."""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=30)


@pytest.fixture(scope="module")
def samples(meta: Path) -> Samples:
    return _samples(meta, "qwen2_5_vl")


def _samples(meta: Path, name: str) -> Samples:
    return Samples(corpus=open_corpus(meta), encoder=Encoder.of(f"toy:{name}"))


def _encoded(samples: Samples) -> list[Encoded]:
    """Pictures, albums of several, clips where the family takes them, and plain talk: every kind beside every other."""
    chosen = [*range(3), *range(12, 15), *range(18, 21), *range(21, 25)]
    if samples.facts.family.name in REFUSES_CLIPS:
        chosen = [index for index in chosen if index not in range(18, 21)]
    encoded = [samples.encode(index) for index in chosen]
    left_out = [sample for sample in encoded if isinstance(sample, Dropped)]
    assert "video" not in samples.facts.family.media or not left_out, left_out
    assert all(sample.reason == "unsupported_media" for sample in left_out)
    return [sample for sample in encoded if isinstance(sample, Encoded)]


@pytest.mark.parametrize("attention", ["positions", "mask"])
@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("name", families.names())
def test_loss_per_document(meta: Path, name: str, attention: Attention, implementation: str) -> None:
    samples = _samples(meta, name)
    facts = samples.facts
    model = with_large_weights(toy.model(name))
    if name == "phi4_mm":  # under sdpa its vision tower is causal for pictures without padding: the model's own effect
        model.set_attn_implementation({"": implementation, "vision_config": "eager"})
    else:
        model.set_attn_implementation(implementation)
    encoded = _encoded(samples)
    fields = facts.family.table
    half = len(encoded) // 2
    packs = [build_pack(part, fields=fields, three_way=facts.three_way) for part in (encoded[:half], encoded[half:])]
    layers = read_layers(facts.family, model.config, attention)
    batch = collate_packs(packs, fields=fields, pad_token=facts.pad_token, attention=attention, layers=layers)
    alone = [loss_alone(model, sample, facts.processor) for sample in encoded]
    together = losses_packed(model, batch)
    worst = max(abs(one - other) for one, other in zip(alone, together, strict=True))
    assert worst <= TOLERANCE, f"packed and alone differ by {worst}"
    assert len({round(loss, 3) for loss in alone}) > len(alone) // 2, "losses are too alike to tell documents apart"


@pytest.mark.parametrize("name", [name for name in families.names() if families.find(name).layers])
def test_masks_by_layer_say_what_the_models_own_say_for_a_document_alone(name: str, meta: Path) -> None:
    """What its layers are handed while it sees one document must be that document's block of our mask for the pack."""
    samples = _samples(meta, name)
    facts = samples.facts
    model = toy.model(name).eval()
    encoded = _encoded(samples)
    pack = build_pack(encoded, fields=facts.family.table, three_way=facts.three_way)
    layers = read_layers(facts.family, model.config, "mask")
    assert layers is not None
    batch = collate_packs([pack], fields=facts.family.table, pad_token=0, attention="mask", layers=layers)
    masks = batch["attention_mask"]
    assert isinstance(masks, dict)
    start = 0
    for sample in encoded:
        stop = start + sample.document.tokens
        for kind, theirs in _own_masks(model, sample, facts.processor).items():
            ours = masks[kind][0, 0, start:stop] == 0
            assert torch.equal(ours[:, start:stop], theirs)
            assert not ours[:, :start].any()
            assert not ours[:, stop:].any()
        start = stop


def _own_masks(model: Any, sample: Encoded, processor: Any) -> dict[str, torch.Tensor]:
    """[T, T] bool by the kind of layer, taken from what the model's own attention layers are handed."""
    model.set_attn_implementation("eager")
    kinds = model.config.get_text_config().layer_types
    found: dict[str, torch.Tensor] = {}

    def remember(kind: str) -> Any:
        def hook(module: Any, values: Any, inputs: dict[str, Any]) -> None:
            found[kind] = inputs["attention_mask"][0, 0] == 0

        return hook

    decoder = next(
        module for module in model.modules() if hasattr(module, "layers") and hasattr(module, "embed_tokens")
    )
    hooks = [
        layer.self_attn.register_forward_pre_hook(remember(kind), with_kwargs=True)
        for kind, layer in zip(kinds, decoder.layers, strict=True)
    ]
    loss_alone(model, sample, processor)
    for hook in hooks:
        hook.remove()
    return found


def test_the_models_own_loss_is_the_mean_over_all_trained_tokens(samples: Samples) -> None:
    facts = samples.facts
    model = with_large_weights(toy.model("qwen2_5_vl"))
    encoded = _encoded(samples)
    pack = build_pack(encoded, fields=facts.family.table, three_way=facts.three_way)
    batch = collate_packs([pack], fields=facts.family.table, pad_token=facts.pad_token)
    with torch.no_grad():
        together = model(**batch).loss.item()
    weights = [int((sample.tensors["labels"][1:] != -100).sum()) for sample in encoded]
    alone = [loss_alone(model, sample, facts.processor) for sample in encoded]
    expected = sum(weight * loss for weight, loss in zip(weights, alone, strict=True)) / sum(weights)
    assert together == pytest.approx(expected, abs=TOLERANCE)


def test_padded_batches_agree_too(samples: Samples) -> None:
    facts = samples.facts
    model = with_large_weights(toy.model("qwen2_5_vl"))
    encoded = _encoded(samples)[:5]
    singles = [build_pack([sample], fields=facts.family.table, three_way=facts.three_way) for sample in encoded]
    batch = collate_samples(singles, fields=facts.family.table, pad_token=facts.pad_token)
    alone = [loss_alone(model, sample, facts.processor) for sample in encoded]
    assert losses_packed(model, batch) == pytest.approx(alone, abs=TOLERANCE)


class TestTheCheckCanFail:
    """Each fault is planted by hand, and seen by the same comparison as above."""

    def _worst(self, samples: Samples, fault: str) -> float:
        facts = samples.facts
        model = with_large_weights(toy.model("qwen2_5_vl"))
        encoded = _encoded(samples)
        pack = build_pack(encoded, fields=facts.family.table, three_way=facts.three_way)
        batch = collate_packs([pack], fields=facts.family.table, pad_token=facts.pad_token, attention="mask")
        inputs = dict(batch.inputs)
        if fault == "positions not reset":
            length = batch.tensor("input_ids").shape[1]
            inputs["position_ids"] = torch.arange(length).expand(3, 1, length)
        if fault == "mask too wide":
            length = batch.tensor("input_ids").shape[1]
            wide = torch.zeros(1, 1, length, length)
            inputs["attention_mask"] = wide.masked_fill(torch.ones(length, length).triu(1).bool(), -1e30)
        if fault == "labels shifted twice":
            inputs["shift_labels"] = torch.roll(batch.tensor("shift_labels"), -1, dims=-1)
        broken = type(batch)(inputs=inputs, rows=batch.rows)
        together = losses_packed(model, broken)
        alone = [loss_alone(model, sample, facts.processor) for sample in encoded]
        return max(abs(one - other) for one, other in zip(alone, together, strict=True))

    def test_without_a_fault(self, samples: Samples) -> None:
        assert self._worst(samples, "none") <= TOLERANCE

    @pytest.mark.parametrize("fault", ["positions not reset", "mask too wide", "labels shifted twice"])
    def test_with_a_fault(self, samples: Samples, fault: str) -> None:
        assert self._worst(samples, fault) > 100 * TOLERANCE


@pytest.mark.parametrize("name", families.names())
def test_a_placeholder_changes_no_loss(name: str, meta: Path) -> None:
    from lading import Loader

    talks = meta.parent / "talks.jsonl"
    model = with_large_weights(toy.model(name))
    plain = Loader(talks, f"toy:{name}", pack_size=256)
    room = 1024 - Loader(talks, f"toy:{name}", pack_size=1024, placeholder_media=True).plan.pack_size
    shown = Loader(talks, f"toy:{name}", pack_size=256 + room, placeholder_media=True)  # the same packs, and room
    media = {field for field in families.find(name).fields if "pixel_values" in field}
    for without, with_picture in zip(plain, shown, strict=True):
        assert not media & set(without)
        assert media & set(with_picture)
        with torch.no_grad():
            expected = model(**without).loss.item()
            assert model(**with_picture).loss.item() == pytest.approx(expected, rel=1e-6)
