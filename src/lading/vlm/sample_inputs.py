"""One encoded sample as the dictionary that collate functions take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lading.records import Document, Encoded

if TYPE_CHECKING:
    from torch import Tensor


class SampleInputs(dict[str, "Tensor"]):
    """The tensors of one sample by name, with the document they belong to: its counts travel with it."""

    document: Document


def as_inputs(encoded: Encoded) -> SampleInputs:
    """A sample for a collate function: `input_ids`, `attention_mask` and `labels` [T], and its media tensors."""
    import torch

    ids = encoded.tensors["input_ids"]
    inputs = SampleInputs(input_ids=ids, attention_mask=torch.ones_like(ids))
    inputs.update({name: tensor for name, tensor in encoded.tensors.items() if name != "input_ids"})
    inputs.document = encoded.document
    return inputs
