"""Media cut for the microbatches of a pipeline schedule: `name → one entry a microbatch`.

An entry is `None` where its microbatch has no rows of it. A vision tower fails on an empty tensor, and a model without
the input takes the way it takes for plain text.
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Any

from torch import Tensor

from lading.errors import ConfigError, ExactnessError
from lading.fields import Field, row_count
from lading.microbatch.ownership import BOOKKEEPING, MEDIA_KEYS, Media, Ownership
from lading.microbatch.pieces import piece_sizes, piece_sums
from lading.records import Batch, Document
from lading.tensors import cut, extent, width

Chunks = dict[str, list[Any]]
Rows = Sequence[Sequence[Document]]


def chunk_media(batch: Mapping[str, Any], rows: int, pieces: int) -> Chunks:
    """Every media input of a batch, by the counts the batch carries.

    >>> import torch
    >>> batch = {"image_sizes": torch.arange(4), "n_images_per_sample": torch.tensor([3, 1, 0, 0])}
    >>> chunk_media(batch, rows=4, pieces=2)
    {'image_sizes': [tensor([0, 1, 2, 3]), None]}
    """
    sizes, counts = piece_sizes(rows, pieces), Ownership.read(batch, rows).counts
    chunks: Chunks = {}
    for name, key in MEDIA_KEYS.items():
        if batch.get(name) is None:
            continue
        # What is stacked by sample has rows for samples without media too; their counts know better.
        counted = batch.get(row_count(name), counts.get(key.kind))
        having = sizes if counted is None else piece_sums([int(count) for count in counted], sizes)
        cuts = zip(cut_media(name, batch, rows, pieces), having, strict=True)
        chunks[name] = [part if many and _filled(part) else None for part, many in cuts]
    return chunks


def cut_media(name: str, batch: Mapping[str, Any], rows: int, pieces: int) -> list[Any]:
    """One media input, cut. A microbatch without media gets a tensor of no rows.

    >>> import torch
    >>> batch = {"image_sizes": torch.arange(4), "n_images_per_sample": [3, 1, 0, 0]}
    >>> cut_media("image_sizes", batch, rows=4, pieces=2)
    [tensor([0, 1, 2, 3]), tensor([], dtype=torch.int64)]
    """
    sizes, ownership = piece_sizes(rows, pieces), Ownership.read(batch, rows)
    if pieces == 1 and MEDIA_KEYS[name].kind not in ownership.counts:
        return [batch[name]]  # There is nobody else it could belong to.
    owned = piece_sums(ownership.extents(name, batch), sizes)
    return _cut(batch[name], owned, ownership.layout(name, batch).dim)


def chunk_documents(tensors: Mapping[str, Tensor], rows: Rows, pieces: int, fields: Mapping[str, Field]) -> Chunks:
    """The media of one of our own batches, whose documents say what belongs to whom: the exact inverse of joining."""
    sizes = piece_sizes(len(rows), pieces)
    return {
        name: _by_documents(name, tensor, rows, sizes, fields[name])
        for name, tensor in tensors.items()
        if name in fields and fields[name].axis != "token"
    }


def move_media(
    batch: MutableMapping[str, Any] | Batch,
    rows: int | None,
    pieces: int,
    *,
    key: str,
    fields: Mapping[str, Field] | None = None,
) -> MutableMapping[str, Any]:
    """The batch with its media cut, under `key`. A mapping is changed in place, and only when nothing was refused.

    `rows` is how many the batch should have; `None` where nobody knows better than its `input_ids`.
    """
    rows = _checked_rows(batch, rows)
    if isinstance(batch, Batch):
        tensors = {name: value for name, value in batch.inputs.items() if isinstance(value, Tensor)}
        chunks = chunk_documents(tensors, batch.rows, pieces, fields or _declared(tensors, batch.rows))
        batch = dict(batch.inputs)
    else:
        piece_sizes(rows, pieces)  # Impossible numbers are refused even where there are no media to cut.
        Ownership.read(batch, rows).check_complete(batch)
        chunks = chunk_media(batch, rows, pieces)
    for name in (*MEDIA_KEYS, *chunks, *BOOKKEEPING):
        batch.pop(name, None)
    if chunks:
        batch[key] = chunks
    return batch


def _checked_rows(batch: MutableMapping[str, Any] | Batch, rows: int | None) -> int:
    ids = (batch.inputs if isinstance(batch, Batch) else batch).get("input_ids")
    if isinstance(ids, Tensor) and len(ids) == (len(ids) if rows is None else rows):
        return len(ids)
    raise ConfigError(
        found=f"input_ids {list(ids.shape)}" if isinstance(ids, Tensor) else "a batch without input_ids",
        wanted="input_ids" if rows is None else f"input_ids with {rows} rows",
        where="media for pipeline stages",
    )


def _declared(tensors: Mapping[str, Tensor], rows: Rows) -> dict[str, Field]:
    """What the media of a batch count, where its family's table was not given: as the documents' rows add up."""
    documents = [document for row in rows for document in row]
    declared: dict[str, Field] = {}
    for name, key in MEDIA_KEYS.items():
        if name in tensors:
            others = (Field(axis=key.kind), Field(axis="image_group"), Field(axis="image_patch", dim=1))
            fitting = (
                field
                for field in (key.field, *others)
                if sum(extent(document, field) for document in documents) == tensors[name].shape[field.dim]
            )
            declared[name] = next(fitting, key.field)
    return declared


def _by_documents(name: str, tensor: Tensor, rows: Rows, sizes: Sequence[int], field: Field) -> list[Tensor | None]:
    owned = piece_sums([sum(extent(document, field) for document in row) for row in rows], sizes)
    if sum(owned) != tensor.shape[field.dim]:
        raise ExactnessError(
            found=f"{tensor.shape[field.dim]} rows of {name!r}",
            wanted=f"{sum(owned)}, as the documents of {len(rows)} rows carry",
            consequence="media would go to the wrong microbatch",
        )
    widths = [max(width(document, field) for document in row) for row in rows]
    parts: list[Tensor | None] = []
    start = 0
    for part, size in zip(cut(tensor, owned, field.dim), sizes, strict=True):
        kept = part
        if field.stretch is not None:
            widest = max(widths[start : start + size])
            kept = cut(part, [widest, part.shape[field.stretch] - widest], field.stretch)[0]
        parts.append(kept if part.shape[field.dim] else None)
        start += size
    return parts


def _cut(value: Media, sizes: Sequence[int], dim: int) -> list[Any]:
    if isinstance(value, Tensor):
        return cut(value, sizes, dim)
    starts = [sum(sizes[:piece]) for piece in range(len(sizes))]
    return [list(value[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def _filled(value: Media) -> bool:
    return value.numel() > 0 if isinstance(value, Tensor) else len(value) > 0
