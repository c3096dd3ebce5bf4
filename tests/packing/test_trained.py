"""Scores only where something is trained: the same loss, the same gradients."""

from pathlib import Path

import pytest
import torch

from lading import Loader, families, toy, trained_only
from lading.errors import ConfigError

KNOW_IT = [name for name in families.names() if name != "qwen3_omni"]


@pytest.mark.parametrize("name", KNOW_IT)
def test_loss_and_gradients_are_the_same(toy_meta: Path, name: str) -> None:
    model = toy.model(name)
    batches = Loader(toy_meta, f"toy:{name}", pack_size=700)
    # Two model classes refuse clips, packed or not (see tests/flow).
    batch = next(batch for batch in batches if not any(document.footprints("video") for document in batch.rows[0]))
    less = trained_only(batch)
    assert less.tensor("shift_labels").shape[1] < batch.tensor("shift_labels").shape[1]
    assert less.rows == batch.rows
    losses, gradients = [], []
    for own in (batch, less):
        model.zero_grad()
        loss = model(**own).loss
        loss.backward()
        losses.append(loss.item())
        gradients.append([weight.grad.clone() for weight in model.parameters() if weight.grad is not None])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    for one, other in zip(*gradients, strict=True):
        assert torch.allclose(one, other, atol=1e-6)


def test_a_model_that_does_not_know_it_says_so(toy_meta: Path) -> None:
    batch = next(iter(Loader(toy_meta, "toy:qwen3_omni", pack_size=300)))
    with pytest.raises(ValueError, match="to match target"):
        toy.model("qwen3_omni")(**trained_only(batch))


def test_several_rows_are_refused(toy_meta: Path) -> None:
    batch = next(iter(Loader(toy_meta, "toy:qwen2_5_vl", pack_size=300, batch_size=2)))
    with pytest.raises(ConfigError, match="batch of 2 rows"):
        trained_only(batch)


@pytest.mark.parametrize("name", families.names())
def test_the_loss_is_a_mean_over_as_many_places_as_a_batch_says(toy_meta: Path, name: str) -> None:
    model = toy.model(name).eval()
    batches = Loader(toy_meta, f"toy:{name}", pack_size=700, placeholder_media=True)
    batch = next(batch for batch in batches if not any(document.footprints("video") for document in batch.rows[0]))
    with torch.no_grad():
        mean = model(**batch).loss.item()
        # What examples rely on: a model that is told by how many labels to divide divides by those.
        total = model(**batch, num_items_in_batch=torch.tensor(1.0)).loss.item()
    assert total == pytest.approx(mean * batch.label_tokens, rel=1e-5)
