"""A loss that weighs answers as their rows say: packed, it is that of the samples alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

import lading
from lading import toy
from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX

FAMILIES = ("qwen2_5_vl", "qwen3_vl", "internvl", "gemma3", "llava_onevision", "smolvlm")


def write(folder: Path, *, fractions: bool = True) -> Path:
    """Rows whose answers weigh 1, 0, a half, and, by their row, a tenth."""
    rows = []
    for place, (weight, row) in enumerate([(1, {}), (0, {}), (0.5, {}), (1, {"loss_weight": 0.1})] * 2):
        again = [{"role": "user", "content": f"And {place}?"}, {"role": "assistant", "content": f"{place} it is."}]
        first = {"role": "assistant", "content": "A green field with two cows in it."}
        own = {"weight": weight if fractions else weight and 1}
        rows.append(
            {"messages": [{"role": "user", "content": "What?"}, {**first, **own}, *again], **(row if fractions else {})}
        )
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder / "rows.jsonl"


def by_hand(model: Any, loader: lading.Loader) -> tuple[float, float]:
    """Σ weight · loss and Σ weight over samples, each alone in the model."""
    total = weight = 0.0
    for index in range(len(loader.samples)):
        sample: Any = loader.samples.encode(index)
        with torch.no_grad():
            scores = model(input_ids=sample.tensors["input_ids"][None], use_cache=False).logits[0]
        labels, weights = sample.tensors["labels"][1:], sample.tensors["loss_weights"][1:]
        losses = cross_entropy(scores[:-1].float(), labels, ignore_index=IGNORE_INDEX, reduction="none")
        total += float((losses * weights).sum())
        weight += float(weights.sum())
    return total, weight


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("batch_size", [1, 2])
def test_packed_equals_alone(tmp_path: Path, family: str, batch_size: int) -> None:
    model = toy.model(family).eval()
    loader = lading.Loader(
        write(tmp_path), f"toy:{family}", pack_size=160, batch_size=batch_size, loss_weights=True, cache=False
    )
    total, weight = by_hand(model, loader)
    batches = list(loader)
    assert any(len(row) > 1 for batch in batches for row in batch.rows), "nothing is packed"
    assert sum(batch.label_weight for batch in batches) == pytest.approx(weight, abs=1e-5)
    with torch.no_grad():
        summed = sum(float(lading.weighted_loss(model(**batch), batch, total=weight)) for batch in batches)
    assert summed == pytest.approx(total / weight, abs=1e-5)
    plain = sum(batch.label_tokens for batch in batches)
    assert plain > weight, "weights below 1 count less"


def test_it_is_not_the_loss_without_weights(tmp_path: Path) -> None:
    model = toy.model("qwen2_5_vl").eval()
    loader = lading.Loader(write(tmp_path), "toy:qwen2_5_vl", pack_size=2048, loss_weights=True, cache=False)
    (batch,) = loader
    assert "loss_weights" not in batch
    with torch.no_grad():
        outputs = model(**batch)
    assert abs(float(outputs.loss) - float(lading.weighted_loss(outputs, batch))) > 1e-3


def test_weights_travel_with_the_batch(tmp_path: Path) -> None:
    loader = lading.Loader(
        write(tmp_path), "toy:qwen2_5_vl", pack_size=2048, loss_weights=True, cache=False, num_workers=1
    )
    (batch,) = loader
    trained = lading.trained_only(batch)
    assert trained.loss_weights.shape == trained.tensor("shift_labels").shape
    assert trained.label_weight == pytest.approx(batch.label_weight)
    moved = batch.to("cpu")
    assert torch.equal(moved.loss_weights, batch.loss_weights)
    assert sorted(batch.loss_weights.unique().tolist()) == pytest.approx([0.0, 0.1, 0.5, 1.0])


def test_weights_of_0_and_1_need_no_option_and_fractions_do(tmp_path: Path) -> None:
    whole = lading.Loader(write(tmp_path, fractions=False), "toy:qwen2_5_vl", pack_size=2048, cache=False)
    (batch,) = whole
    with pytest.raises(ConfigError, match=r"wanted Loader\(loss_weights=True\)"):
        batch.loss_weights  # noqa: B018 - asked for, to be refused
    assert batch.label_tokens == int(whole.lengths.label_tokens.sum())
    with pytest.raises(ConfigError, match="wanted loss_weights=True, and a loss that uses them"):
        lading.Loader(write(tmp_path), "toy:qwen2_5_vl", pack_size=2048, cache=False)
