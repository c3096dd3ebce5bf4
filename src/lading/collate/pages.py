"""Batches as the pages of NeMo Automodel describe them: dictionaries, padded, then shifted by one as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lading.errors import ConfigError
from lading.fields import MEDIA_KINDS, TOKEN_FIELDS, Field
from lading.records import Document
from lading.tensors import join, pad, stack

COUNT_NAMES = {kind: f"n_{kind}s_per_sample" for kind in MEDIA_KINDS}
SEQUENCES = {**TOKEN_FIELDS, "attention_mask": Field(axis="token")}


def pad_samples(
    samples: Sequence[Mapping[str, Tensor]],
    *,
    fields: Mapping[str, Field],
    pad_token: int,
    length: int | None = None,
    left: bool = False,
    documents: Sequence[Document] | None = None,
) -> dict[str, Any]:
    """One row a sample, padded to `length` or to the longest; media one after the other, with their counts.

    `documents` says what belongs to each sample; without it, what has one row for each medium is counted.

    >>> rows = [{"input_ids": torch.tensor([5, 6])}, {"input_ids": torch.tensor([7])}]
    >>> pad_samples(rows, fields={"input_ids": Field(axis="token")}, pad_token=0)["input_ids"].tolist()
    [[5, 6], [7, 0]]
    """
    if not samples:
        raise ConfigError(found="no examples", wanted="at least one", where="collate")
    longest = max(len(sample["input_ids"]) for sample in samples)
    width = longest if length is None else length
    if longest > width:
        raise ConfigError(found=f"a sample of {longest} tokens", wanted=f"at most {width}", where="collate")
    table = {**fields, "attention_mask": SEQUENCES["attention_mask"]}
    values = {"input_ids": pad_token}
    names = [name for name in samples[0] if name in table and table[name].axis == "token"]
    batch: dict[str, Any] = {
        name: stack([pad(sample[name], width, table[name], values.get(name), left=left) for sample in samples])
        for name in names
    }
    media = [{name: value for name, value in sample.items() if name not in names} for sample in samples]
    counts = tensor_counts(media, fields) if documents is None else document_counts(documents, fields)
    return batch | join(media, fields) | counts


def tensor_counts(samples: Sequence[Mapping[str, Tensor]], fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """How many media of each kind every sample has, where any has one: [B] numbers each."""
    counts: dict[str, Tensor] = {}
    for kind, name in COUNT_NAMES.items():
        keys = [key for key, field in fields.items() if field.axis == kind]
        numbers = [next((len(sample[key]) for key in keys if key in sample), 0) for sample in samples]
        if any(numbers):
            counts[name] = torch.tensor(numbers)
    return counts


def document_counts(documents: Sequence[Document], fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """The same by what the documents carry, and `n_tiles_per_image` for a family whose pictures nothing else counts."""
    counts: dict[str, Tensor] = {}
    for kind, name in COUNT_NAMES.items():
        numbers = [len(document.footprints(kind)) for document in documents]
        if any(numbers):
            counts[name] = torch.tensor(numbers)
    axes = {field.axis for field in fields.values()}
    if "image_patch" in axes and "image" not in axes and COUNT_NAMES["image"] in counts:
        rows = [footprint.rows for document in documents for footprint in document.footprints("image")]
        counts["n_tiles_per_image"] = torch.tensor(rows)
    return counts


def shift_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The one shift: labels lose their first place, everything that runs along with them its last.

    >>> shifted = shift_batch({"input_ids": torch.tensor([[1, 2, 3]]), "labels": torch.tensor([[-100, 2, 3]])})
    >>> shifted["input_ids"].tolist(), shifted["labels"].tolist()
    ([[1, 2]], [[2, 3]])
    """
    width = batch["input_ids"].shape[-1]
    shifted = dict(batch)
    for name, value in batch.items():
        if isinstance(value, Tensor) and value.ndim > 1 and value.shape[-1] == width and name in _ALONG:
            shifted[name] = value[..., :-1]
    shifted["labels"] = batch["labels"][..., 1:]
    return shifted


_ALONG = frozenset({*SEQUENCES, "mm_token_type_ids", "token_type_ids"}) - {"labels"}
"""What has one entry for each token. Known by name: a medium may be as wide as the text by coincidence."""
