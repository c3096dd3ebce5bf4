"""Cut a batch along its rows. A medium follows its row because its document says so, whatever the shapes are."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lading.fields import BORDERS, Field
from lading.microbatch.chunks import chunk_documents
from lading.microbatch.pieces import piece_sizes
from lading.records import Batch, Document, Microbatch
from lading.tensors import cut_rows

Rows = tuple[tuple[Document, ...], ...]


def cut_batch(batch: Batch, pieces: int, *, fields: Mapping[str, Field]) -> list[Microbatch]:
    """`pieces` microbatches of equally many rows (the first ones get one more where it does not divide)."""
    sizes = piece_sizes(len(batch.rows), pieces)
    own_borders = _borders(batch, sizes)
    tensors = {name: value for name, value in batch.inputs.items() if isinstance(value, Tensor) and name not in BORDERS}
    media = chunk_documents(tensors, batch.rows, pieces, fields)
    tokens = cut_rows({name: value for name, value in tensors.items() if name not in media}, sizes, fields)
    masks = _masks(batch, sizes)
    constants = {name: value for name, value in batch.inputs.items() if isinstance(value, int)}
    own = [{name: parts[piece] for name, parts in media.items() if parts[piece] is not None} for piece in range(pieces)]
    return [
        Microbatch(inputs={**constants, **token_part, **mask_part, **borders, **media_part}, rows=rows)
        for rows, token_part, mask_part, borders, media_part in zip(
            _groups(batch.rows, sizes), tokens, masks, own_borders, own, strict=True
        )
    ]


def _borders(batch: Batch, sizes: list[int]) -> list[dict[str, Tensor]]:
    """Borders of documents, for each microbatch counted from its own first row. The longest may be another's."""
    parts: list[dict[str, Tensor]] = [{} for _ in sizes]
    for name in BORDERS:
        if name in batch:
            whole, length = batch.tensor(name), batch.tensor("input_ids").shape[1]
            for piece, part in enumerate(parts):
                first, last = sum(sizes[:piece]) * length, sum(sizes[: piece + 1]) * length
                part[name] = whole[(whole >= first) & (whole <= last)] - first
    return parts


def _masks(batch: Batch, sizes: list[int]) -> list[dict[str, dict[str, Tensor]]]:
    """Masks by the kind of layer, for each microbatch."""
    parts: list[dict[str, dict[str, Tensor]]] = [{} for _ in sizes]
    for name, value in batch.inputs.items():
        if isinstance(value, Mapping):
            for part, own in zip(parts, cut_rows(value, sizes, {}), strict=True):
                part[name] = own
    return parts


def _groups(rows: Rows, sizes: list[int]) -> list[Rows]:
    starts = [sum(sizes[:piece]) for piece in range(len(sizes))]
    return [rows[start : start + size] for start, size in zip(starts, sizes, strict=True)]
