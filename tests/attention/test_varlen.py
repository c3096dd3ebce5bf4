"""Documents seen by their boundaries: the same losses and logits as alone, and as sdpa has them."""

from __future__ import annotations

import json
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lading import Loader, families, toy
from lading.attention import LANGUAGE, TOWER, use_varlen
from lading.encode import Encoder
from lading.encode.processor_facts import read_layers
from lading.errors import ConfigError
from lading.family import Attention
from lading.loader import Samples
from lading.microbatch import cut_batch
from lading.packing import build_pack, collate_packs, collate_samples
from lading.records import Batch, Encoded, Pack
from lading.sources import open_corpus
from tests.flow.test_packed_equals_alone import REFUSES_CLIPS
from tests.support.alone import loss_alone, losses_packed

TOLERANCE = 1e-5
BOTH_WAYS = ("gemma3", "gemma4")
"""Families whose pictures are seen both ways: no boundaries can say that."""
BY_BORDERS = [name for name in families.names() if name not in BOTH_WAYS]
TOWERS = ("qwen2_5_vl", "qwen3_vl", "qwen3_omni", "kimi_k25")
"""Families whose vision tower attends window by window, or picture by picture, in one row."""
LAYERS = 2
"""Of every toy's tower."""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=30)


def loud_model(name: str) -> Any:
    """Large weights, so that a leak between documents shows in the logits."""
    model = toy.model(name)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4.0)
    if name == "phi4_mm":  # under sdpa its vision tower is causal for pictures without padding: the model's own effect
        model.set_attn_implementation({"": "sdpa", "vision_config": "eager"})
    return model.eval()


def samples_of(meta: Path, name: str) -> Samples:
    return Samples(corpus=open_corpus(meta), encoder=Encoder.of(f"toy:{name}"))


def encoded_of(samples: Samples) -> list[Encoded]:
    """Pictures, albums, talks, and a clip where the family takes one."""
    clip = () if samples.facts.family.name in REFUSES_CLIPS else (18,)
    encoded = [samples.encode(index) for index in (0, 12, 13, 21, *clip, 22, 23)]
    return [sample for sample in encoded if isinstance(sample, Encoded)]


def packs_of(samples: Samples, groups: list[list[Encoded]]) -> list[Pack]:
    facts = samples.facts
    return [build_pack(group, fields=facts.family.table, three_way=facts.three_way) for group in groups]


def two_rows(samples: Samples, encoded: list[Encoded], attention: Attention) -> Batch:
    """Two packs of different lengths: the shorter is padded."""
    packs = packs_of(samples, [encoded[:4], encoded[4:]])
    assert packs[0].length != packs[1].length
    facts = samples.facts
    return collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token, attention=attention)


def worst(one: list[float], other: list[float]) -> float:
    return max(abs(first - second) for first, second in zip(one, other, strict=True))


def logits_of(model: Any, batch: Batch) -> torch.Tensor:
    """The logits of the documents, without the padding."""
    with torch.no_grad():
        logits = model(**batch).logits
    rows = [logits[row, : sum(own.tokens for own in documents)] for row, documents in enumerate(batch.rows)]
    return torch.cat(rows)


@pytest.mark.parametrize("attention", ["positions", "varlen"])
@pytest.mark.parametrize("name", BY_BORDERS)
def test_packed_is_as_alone_and_as_sdpa_has_it(meta: Path, name: str, attention: Attention) -> None:
    samples, model = samples_of(meta, name), loud_model(name)
    encoded = encoded_of(samples)
    alone = [loss_alone(model, sample, samples.facts.processor) for sample in encoded]
    batch = two_rows(samples, encoded, attention)
    theirs = logits_of(model, two_rows(samples, encoded, "positions"))
    assert LANGUAGE in use_varlen(model).values()
    assert worst(losses_packed(model, batch), alone) <= TOLERANCE
    ours = logits_of(model, batch)
    assert (ours - theirs).abs().max() <= TOLERANCE * theirs.abs().max().clamp(min=1.0)


def test_no_dense_mask_is_made(meta: Path) -> None:
    """What the layers are handed instead of [B, 1, S, S]."""
    samples, model = samples_of(meta, "qwen2_5_vl"), loud_model("qwen2_5_vl")
    use_varlen(model)
    batch = two_rows(samples, encoded_of(samples), "positions")
    seen: list[torch.Tensor] = []
    layer = model.model.language_model.layers[0].self_attn
    layer.register_forward_pre_hook(
        lambda module, values, named: seen.append(named["attention_mask"]), with_kwargs=True
    )
    losses_packed(model, batch)
    whole = two_rows(samples, encoded_of(samples), "varlen")
    assert torch.equal(seen[0], whole.tensor("cu_seq_lens_q"))


@pytest.mark.parametrize("fault", ["a facts too late", "no boundaries inside a row", "none"])
def test_wrong_borders_are_seen(meta: Path, fault: str) -> None:
    samples, model = samples_of(meta, "qwen2_5_vl"), loud_model("qwen2_5_vl")
    encoded = encoded_of(samples)
    alone = [loss_alone(model, sample, samples.facts.processor) for sample in encoded]
    use_varlen(model)
    batch = two_rows(samples, encoded, "varlen")
    right = batch.tensor("cu_seq_lens_q")
    wrong = right.clone()
    if fault == "a facts too late":
        wrong[1] += 1
    if fault == "no boundaries inside a row":
        length = batch.tensor("input_ids").shape[1]
        wrong = torch.tensor([0, length, 2 * length], dtype=torch.int32)
    broken = replace(batch, inputs={**batch.inputs, "cu_seq_lens_q": wrong, "cu_seq_lens_k": wrong})
    difference = worst(losses_packed(model, broken), alone)
    assert difference <= TOLERANCE if fault == "none" else difference > 100 * TOLERANCE


@pytest.mark.parametrize("name", ["qwen2_5_vl", "internvl", *BOTH_WAYS])
def test_padded_rows_too(meta: Path, name: str) -> None:
    samples, model = samples_of(meta, name), loud_model(name)
    encoded = encoded_of(samples)[:4]
    alone = [loss_alone(model, sample, samples.facts.processor) for sample in encoded]
    singles, facts = packs_of(samples, [[sample] for sample in encoded]), samples.facts
    batch = collate_samples(singles, fields=facts.family.table, pad_token=facts.pad_token)
    use_varlen(model)
    assert losses_packed(model, batch) == pytest.approx(alone, abs=TOLERANCE)


@pytest.mark.parametrize("attention", ["positions", "mask"])
@pytest.mark.parametrize("name", BOTH_WAYS)
def test_what_borders_cannot_say_goes_the_dense_way(meta: Path, name: str, attention: Attention) -> None:
    samples, model = samples_of(meta, name), loud_model(name)
    encoded, facts = encoded_of(samples), samples.facts
    alone = [loss_alone(model, sample, facts.processor) for sample in encoded]
    use_varlen(model)
    batch = collate_packs(
        packs_of(samples, [encoded[:4], encoded[4:]]),
        fields=facts.family.table,
        pad_token=facts.pad_token,
        attention=attention,
        layers=read_layers(facts.family, model.config, attention),
    )
    assert worst(losses_packed(model, batch), alone) <= TOLERANCE


@pytest.mark.parametrize("name", BOTH_WAYS)
def test_families_that_borders_do_not_fit_are_refused_by_name(meta: Path, name: str) -> None:
    title = families.find(name).title
    with pytest.raises(ConfigError, match=f"{title}, whose pictures are seen both ways; wanted attention='positions'"):
        Loader(meta, f"toy:{name}", pack_size=512, attention="varlen", model_config=toy.model(name).config)
    with pytest.raises(ConfigError, match=f"attention='varlen' for {title} without model_config"):
        Loader(meta, f"toy:{name}", pack_size=512, attention="varlen")


@pytest.mark.parametrize("name", TOWERS)
def test_a_tower_makes_one_call_for_all_its_windows(meta: Path, name: str) -> None:
    samples, model = samples_of(meta, name), loud_model(name)
    facts = samples.facts
    packs = packs_of(samples, [encoded_of(samples)])
    batch = collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token, attention="varlen")
    calls = {"sdpa": 0, TOWER: 0}
    with torch.no_grad():
        theirs = _counted(model, batch, calls, "sdpa")
        assert use_varlen(model)["vision_config"] == TOWER
        ours = _counted(model, batch, calls, TOWER)
    assert torch.allclose(ours, theirs, atol=TOLERANCE * float(theirs.abs().max()), rtol=0)
    assert calls[TOWER] < calls["sdpa"]
    passes = len({"pixel_values", "pixel_values_videos"} & set(batch))
    assert calls[TOWER] == passes * LAYERS


def _counted(model: Any, batch: Batch, calls: dict[str, int], name: str) -> torch.Tensor:
    """The logits of a forward pass; how often its tower called its attention is written into `calls`."""
    from transformers import AttentionInterface

    interface = AttentionInterface()
    inner = interface[name]

    def count(module: Any, *values: Any, **named: Any) -> Any:
        calls[name] += "Vision" in type(module).__name__ or "Audio" in type(module).__name__
        return inner(module, *values, **named)

    AttentionInterface.register(name, count)
    try:
        logits: torch.Tensor = model(**batch).logits
    finally:
        AttentionInterface.register(name, inner)
    return logits


def test_sounds_are_heard_as_sdpa_has_them(tmp_path: Path) -> None:
    """A tower for sound hands its pieces over, too."""
    rows = []
    for number, seconds in enumerate((1.2, 2.1, 3.3)):
        tone = np.sin(np.arange(int(16_000 * seconds)) / (5 + number)) * 20_000
        with wave.open(str(tmp_path / f"{number}.wav"), "wb") as file:
            file.setnchannels(1)
            file.setsampwidth(2)
            file.setframerate(16_000)
            file.writeframes(tone.astype("<i2").tobytes())
        talk = [{"from": "human", "value": "<audio>What is it?"}, {"from": "gpt", "value": f"A hum, number {number}."}]
        rows.append({"conversations": talk, "audios": [f"{number}.wav"]})
    corpus = tmp_path / "sounds.jsonl"
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    samples, model = samples_of(corpus, "qwen3_omni"), loud_model("qwen3_omni")
    encoded = [sample for index in range(3) if isinstance(sample := samples.encode(index), Encoded)]
    assert len(encoded) == 3
    facts, packs = samples.facts, packs_of(samples, [encoded])
    batch = collate_packs(packs, fields=facts.family.table, pad_token=facts.pad_token, attention="varlen")
    theirs = logits_of(model, batch)
    assert use_varlen(model)["audio_config"] == TOWER
    assert (logits_of(model, batch) - theirs).abs().max() <= TOLERANCE * theirs.abs().max()


def test_a_batch_of_borders_moves_and_is_cut(meta: Path) -> None:
    samples = samples_of(meta, "qwen2_5_vl")
    batch = two_rows(samples, encoded_of(samples), "varlen")
    moved = batch.to("meta")
    assert moved["max_length_q"] == batch["max_length_q"] == max(own.tokens for row in batch.rows for own in row)
    assert moved.tensor("cu_seq_lens_k").device.type == "meta"
    with pytest.raises(KeyError, match="not a tensor"):
        batch.tensor("max_length_q")
    model = loud_model("qwen2_5_vl")
    use_varlen(model)
    together = losses_packed(model, batch)
    pieces = cut_batch(batch, 2, fields=samples.facts.family.table)
    apart = [loss for piece in pieces for loss in losses_packed(model, Batch(inputs=piece.inputs, rows=piece.rows))]
    assert worst(apart, together) <= TOLERANCE
    ends = [
        int(boundaries[-1]) for piece in pieces if isinstance(boundaries := piece.inputs["cu_seq_lens_q"], torch.Tensor)
    ]
    assert ends == [batch.tensor("input_ids").shape[1]] * 2


def test_gradients_are_those_of_sdpa(meta: Path) -> None:
    samples = samples_of(meta, "qwen2_5_vl")
    batch = two_rows(samples, encoded_of(samples), "varlen")
    gradients = []
    for ours in (False, True):
        model = toy.model("qwen2_5_vl")
        if ours:
            use_varlen(model)
            model.gradient_checkpointing_enable()
            model.train()
        model(**batch).loss.backward()
        gradients.append({name: value.grad for name, value in model.named_parameters()})
    for name, expected in gradients[0].items():
        assert torch.allclose(gradients[1][name], expected, atol=1e-6), name


def test_a_loader_hands_borders_over(meta: Path) -> None:
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=512, batch_size=2, attention="varlen", num_workers=1)
    for batch in loader:
        boundaries = batch.tensor("cu_seq_lens_q")
        assert boundaries.dtype == torch.int32
        starts = batch.tensor("position_ids")[0].flatten() == 0
        assert boundaries[:-1].tolist() == starts.nonzero().flatten().tolist()


def test_a_model_with_attention_of_its_own_is_refused() -> None:
    model = toy.model("qwen2_5_vl")
    model.set_attn_implementation = lambda chosen: None
    with pytest.raises(ConfigError, match="whose attention is its own"):
        use_varlen(model)
