"""Batches as the pages of NeMo Automodel describe them: dictionaries, padded, then shifted by one as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lading.errors import ConfigError, Reason, SkipSample
from lading.fields import COUNT_NAMES, SEQUENCE_FIELDS, Field, row_count
from lading.records import Document
from lading.tensors import extent, join, pad, stack

REQUIRED = ("input_ids", "attention_mask", "labels")


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
    names = _sequences(samples)
    longest = max(len(sample["input_ids"]) for sample in samples)
    width = longest if length is None else length
    if longest > width:
        # The sample's fault, not the configuration's: whoever replaces bad samples goes on without it.
        raise SkipSample(
            Reason.TOO_LONG, found=f"a sample of {longest} tokens", wanted=f"at most {width}", where="collate"
        )
    values = {"input_ids": pad_token}
    batch: dict[str, Any] = {
        name: stack(
            [pad(_row(sample, name), width, SEQUENCE_FIELDS[name], values.get(name), left=left) for sample in samples]
        )
        for name in names
    }
    media = [{name: value for name, value in sample.items() if name not in names} for sample in samples]
    counts = tensor_counts(media, fields) if documents is None else document_counts(documents, fields)
    return batch | join(media, fields) | counts


def _sequences(samples: Sequence[Mapping[str, Tensor]]) -> list[str]:
    """What runs along with the ids in any sample; each must be as long as they are."""
    names = [name for name in SEQUENCE_FIELDS if any(name in sample for sample in samples)]
    for place, sample in enumerate(samples):
        for name in names:
            if name not in sample and name in (*REQUIRED, "position_ids"):
                raise ConfigError(found=f"no {name} in sample {place}", wanted="it in every sample, or in none")
            if name in sample and sample[name].shape[-1] != len(sample["input_ids"]):
                raise ConfigError(
                    found=f"{name} of {sample[name].shape[-1]} tokens in sample {place}",
                    wanted=f"{len(sample['input_ids'])}, as its input_ids have",
                )
    return names


def _row(sample: Mapping[str, Tensor], name: str) -> Tensor:
    """A sample's own, or, for token types of plain text, zeros."""
    return sample[name] if name in sample else torch.zeros_like(sample["input_ids"])


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
    tiled = axes & {"image_patch", "visual_patch"} and "image" not in axes
    if tiled and COUNT_NAMES["image"] in counts and COUNT_NAMES["video"] not in counts:
        rows = [footprint.rows for document in documents for footprint in document.footprints("image")]
        counts["n_tiles_per_image"] = torch.tensor(rows)
    # Where tiles and frames share a tensor, or a grid stands for each run of pads, no input tells the rows of another.
    mixed = bool(axes & {"visual_patch", "video_run"})
    for name, field in fields.items():
        told = bool(field.counted_by) or (field.axis == "image_patch" and "n_tiles_per_image" in counts)
        alone = field.unit in ("patch", "run") and not told
        rows = [extent(document, field) for document in documents]
        if field.kinds and any(rows) and (mixed or alone):
            counts[row_count(name)] = torch.tensor(rows)
    return counts


def sample_counts(document: Document, fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """What one document adds to the counts of the row it is packed into: a number [1] each."""
    counts = document_counts([document], fields)
    # Tiles are counted by picture; what adds up over documents is how many rows they have in all. And a row of packs
    # has as many groups as it has documents with pictures, where a row of the batch has one.
    tiled = counts.pop("n_tiles_per_image", None) is not None
    rows = {
        name: extent(document, field)
        for name, field in fields.items()
        if field.unit == "group" or (tiled and field.axis == "image_patch")
    }
    return counts | {row_count(name): torch.tensor([number]) for name, number in rows.items() if number}


def shift_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The one shift: labels lose their first place, everything that runs along with them its last.

    >>> shifted = shift_batch({"input_ids": torch.tensor([[1, 2, 3]]), "labels": torch.tensor([[-100, 2, 3]])})
    >>> shifted["input_ids"].tolist(), shifted["labels"].tolist()
    ([[1, 2]], [[2, 3]])
    """
    width = batch["input_ids"].shape[-1]
    shifted = dict(batch)
    for name, value in batch.items():
        # Known by name: a medium may be as wide as the text by coincidence.
        if name in SEQUENCE_FIELDS and name != "labels" and value.shape[-1] == width:
            shifted[name] = value[..., :-1]
    # In one piece: transformers' losses look at labels as one long row, which a part of a wider tensor cannot be.
    shifted["labels"] = batch["labels"][..., 1:].contiguous()
    return shifted
