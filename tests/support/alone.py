"""A document trained alone, the independent truth: one row, labels unshifted, positions left to the model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lading.fields import IGNORE_INDEX
from lading.records import Batch, Encoded

TYPES = ("mm_token_type_ids", "token_type_ids")


def model_inputs(sample: Encoded, processor: Any) -> dict[str, Any]:
    """What transformers itself would feed its model for this sample."""
    ids = sample.tensors["input_ids"][None]
    inputs: dict[str, Any] = {name: tensor for name, tensor in sample.tensors.items() if name != "labels"}
    inputs["input_ids"] = ids
    inputs["attention_mask"] = torch.ones_like(ids)
    for name in TYPES:
        if name in inputs:
            inputs[name] = inputs[name][None]
    if {"image_grid_thw", "video_grid_thw"} & set(inputs) and "mm_token_type_ids" not in inputs:
        inputs["mm_token_type_ids"] = torch.tensor(processor.create_mm_token_type_ids(ids.tolist()))
    return inputs


@torch.no_grad()
def loss_alone(model: Any, sample: Encoded, processor: Any, **options: Any) -> float:
    """The mean loss of a document by itself, shifted here and not in the library."""
    logits = model(**model_inputs(sample, processor), **options).logits[0]
    labels = sample.tensors["labels"]
    return float(cross_entropy(logits[:-1].float(), labels[1:], ignore_index=IGNORE_INDEX))


@torch.no_grad()
def losses_packed(model: Any, batch: Batch) -> list[float]:
    """The mean loss of every document of a batch, in order."""
    return losses_of(model(**batch).logits, batch)


def losses_of(logits: Tensor, batch: Batch) -> list[float]:
    labels = batch.tensor("shift_labels")
    losses = []
    for row, documents in enumerate(batch.rows):
        start = 0
        for document in documents:
            span = slice(start, start + document.tokens)
            mean = cross_entropy(logits[row, span].float(), labels[row, span], ignore_index=IGNORE_INDEX)
            losses.append(float(mean))
            start += document.tokens
    return losses
