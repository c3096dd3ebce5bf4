"""What a validation loss ought to be: every sample alone through the model, every label once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lading import Loader, toy
from tests.support.alone import loss_alone

TOY = "toy:qwen2_5_vl"
SIZE = 256
"""Tokens in a pack, as the examples have them."""


def loss_of_samples_alone(meta: Path, model: Any) -> float:
    """The mean over all labels of a corpus, by the model's own forward pass over one sample at a time."""
    processor = toy.processor("qwen2_5_vl")
    samples = Loader(meta, TOY, pack_size=SIZE).samples
    total, labels = 0.0, 0
    for number in range(len(samples)):
        sample = samples.encode(number)
        count = int((sample.tensors["labels"][1:] != -100).sum())
        total, labels = total + count * loss_alone(model, sample, processor), labels + count
    return total / labels


def check_set(meta: Path) -> None:
    """Whether a set can tell right from wrong: on two ranks its last step is short, and batches differ in labels."""
    loader = Loader(meta, TOY, pack_size=SIZE, placeholder_media=True, validation=True, rank=1, world_size=2)
    assert loader.plan.repeated == 1
    counts = [batch.label_tokens for batch in loader]
    assert counts[-1] == 0
    assert max(counts) > 1.5 * min(counts[:-1])
    assert not len(loader.plan.too_long)
