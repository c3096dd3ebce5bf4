"""Cut a batch along its rows. A medium follows its row because its document says so, whatever the shapes are."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from lading.errors import ConfigError
from lading.fields import Field
from lading.records import Batch, Document, Microbatch
from lading.tensors import cut_rows, split

Rows = tuple[tuple[Document, ...], ...]


def cut_batch(batch: Batch, pieces: int, *, fields: Mapping[str, Field]) -> list[Microbatch]:
    """`pieces` microbatches of equally many rows (the first ones get one more where it does not divide)."""
    if not 1 <= pieces <= len(batch.rows):
        raise ConfigError(found=f"{pieces} microbatches of {len(batch.rows)} rows", wanted=f"1 to {len(batch.rows)}")
    sizes = [len(batch.rows) // pieces + (piece < len(batch.rows) % pieces) for piece in range(pieces)]
    groups = _groups(batch.rows, sizes)
    media = _media_of(batch, groups, fields)
    rest = {name: value for name, value in _tensors(batch).items() if not _is_medium(name, fields)}
    tokens = cut_rows(rest, sizes, fields)
    constants = {name: value for name, value in batch.inputs.items() if not isinstance(value, Tensor)}
    return [
        Microbatch(inputs={**constants, **token_part, **media_part}, rows=rows)
        for rows, token_part, media_part in zip(groups, tokens, media, strict=True)
    ]


def _groups(rows: Rows, sizes: list[int]) -> list[Rows]:
    starts = [sum(sizes[:piece]) for piece in range(len(sizes))]
    return [rows[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def _media_of(batch: Batch, groups: list[Rows], fields: Mapping[str, Field]) -> list[dict[str, Tensor]]:
    """The media of each group: every document's share, taken together."""
    merged = [
        Document(
            key=rows[0][0].key,
            tokens=0,
            media=tuple(span for row in rows for document in row for span in document.media),
        )
        for rows in groups
    ]
    return split({name: value for name, value in _tensors(batch).items() if _is_medium(name, fields)}, merged, fields)


def _tensors(batch: Batch) -> dict[str, Tensor]:
    return {name: value for name, value in batch.inputs.items() if isinstance(value, Tensor)}


def _is_medium(name: str, fields: Mapping[str, Field]) -> bool:
    return name in fields and fields[name].axis != "token"
