"""join · split · clip · shift (and pad · stack): the only code that concatenates or cuts tensors.

All of it is driven by a family's field table.

`split` is the exact inverse of `join`, because the rows of every document are carried in its `Document`, never guessed
from a shape:

    >>> import torch
    >>> from lading.fields import Field
    >>> from lading.records import Document, SampleKey
    >>> fields = {"input_ids": Field(axis="token")}
    >>> parts = [{"input_ids": torch.tensor([1, 2])}, {"input_ids": torch.tensor([3])}]
    >>> joined = join(parts, fields)
    >>> joined["input_ids"].tolist()
    [1, 2, 3]
    >>> key = SampleKey(index=0, source="s", where="w")
    >>> [part["input_ids"].tolist() for part in split(joined, [Document(key=key, tokens=n) for n in (2, 1)], fields)]
    [[1, 2], [3]]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from lading.errors import ExactnessError, Reason, SkipSample
from lading.fields import IGNORE_INDEX, SEQUENCE_FIELDS, TOKEN_FIELDS, Field
from lading.private_names import new_shared_memory
from lading.records import Document, Encoded

LARGE = 1 << 20
"""Bytes from which on a tensor is worth a piece of shared memory of its own."""


def empty_tensor(shape: Sequence[int], dtype: torch.dtype, device: torch.device | str = "cpu") -> Tensor:
    """An empty tensor. In a worker, a large one lies where the main process will read it, and is not copied there.

    >>> empty_tensor((2, 3), torch.float32).shape
    torch.Size([2, 3])
    """
    size = math.prod(shape) * dtype.itemsize
    if not _handed_over(size, device):
        if size < LARGE or torch.device(device).type != "cpu":
            return torch.empty(*shape, dtype=dtype, device=device)
        # numpy asks Linux for large pages, torch does not: their first use takes half the time.
        return torch.from_numpy(np.empty(size, dtype=np.uint8)).view(dtype).view(*shape)
    return torch.empty(0, dtype=dtype).set_(new_shared_memory(size)).view(*shape)


def _handed_over(size: int, device: torch.device | str) -> bool:
    """Whether a tensor is made by a worker, and large enough for a piece of shared memory of its own."""
    return get_worker_info() is not None and size >= LARGE and torch.device(device).type == "cpu"


def extent(document: Document, field: Field) -> int:
    """How many rows of `field` belong to `document`.

    >>> from lading.records import SampleKey
    >>> extent(Document(key=SampleKey(index=0, source="s", where="w"), tokens=7), Field(axis="token"))
    7
    """
    if field.axis == "token":
        return document.tokens
    if not field.kinds:
        return 1
    footprints = document.footprints(*field.kinds)
    sizes = {
        "": len(footprints),
        "patch": sum(footprint.rows for footprint in footprints),
        "run": sum(len(footprint.runs) for footprint in footprints),
        "group": min(1, len(footprints)),
    }
    return sizes[field.unit]


def width(document: Document, field: Field) -> int:
    """How far a field stretches on its second axis for `document`: as far as its widest medium."""
    return max((footprint.rows for footprint in document.footprints(*field.kinds)), default=0)


def join(parts: Sequence[Mapping[str, Tensor]], fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """Concatenate each field over the parts that have it. A text-only part simply has no pixels."""
    joined: dict[str, Tensor] = {}
    for name in dict.fromkeys(name for part in parts for name in part):
        field, pieces = declared_field(name, fields), [part[name] for part in parts if name in part]
        if field.stretch is not None:
            pieces = _stretched(pieces, field, field.stretch)
        joined[name] = pieces[0] if len(pieces) == 1 else _concatenated(pieces, field.dim)
    return joined


def _concatenated(pieces: list[Tensor], dim: int) -> Tensor:
    first = pieces[0]
    if not _handed_over(sum(piece.nbytes for piece in pieces), first.device):
        return torch.cat(pieces, dim=dim)
    shape = [*first.shape]
    shape[dim] = sum(piece.shape[dim] for piece in pieces)
    return torch.cat(pieces, dim=dim, out=empty_tensor(shape, first.dtype))


def _stretched(pieces: list[Tensor], field: Field, dim: int) -> list[Tensor]:
    """The pieces with their second axis, `dim`, filled up to the widest."""
    widest = max(piece.shape[dim] for piece in pieces)
    along = Field(axis=field.axis, dim=dim, pad=field.pad)
    return [pad(piece, widest, along) for piece in pieces]


def split(
    tensors: Mapping[str, Tensor], documents: Sequence[Document], fields: Mapping[str, Field]
) -> list[dict[str, Tensor]]:
    """Cut joined tensors back into their documents. A part without rows of a medium does not get its key."""
    parts: list[dict[str, Tensor]] = [{} for _ in documents]
    for name, tensor in tensors.items():
        field = declared_field(name, fields)
        extents = [extent(document, field) for document in documents]
        if sum(extents) != tensor.shape[field.dim]:
            raise ExactnessError(
                found=f"{tensor.shape[field.dim]} rows of {name!r}",
                wanted=f"{sum(extents)}, as its {len(documents)} documents carry",
                consequence="media would go to the wrong document",
            )
        pieces = torch.split(tensor, extents, dim=field.dim)
        for part, piece, document, rows in zip(parts, pieces, documents, extents, strict=True):
            if rows:
                part[name] = _narrowed(piece, document, field)
    return parts


def _narrowed(piece: Tensor, document: Document, field: Field) -> Tensor:
    """A document's own share of a stretched field: what was filled up behind it is cut off again."""
    return piece if field.stretch is None else piece.narrow(field.stretch, 0, width(document, field))


def clip(encoded: Encoded, tokens: int, fields: Mapping[str, Field]) -> Encoded:
    """Keep the first `tokens` tokens, or fewer: a medium that would be cut is left out whole, with all after it."""
    document = encoded.document
    for span in document.media:
        if span.start < tokens < span.stop:
            tokens = span.start
    tokens = min(tokens, document.tokens)
    kept = replace(document, tokens=tokens, media=tuple(span for span in document.media if span.stop <= tokens))
    tensors: dict[str, Tensor] = {}
    for name, tensor in encoded.tensors.items():
        field = declared_field(name, fields)
        if field.unit == "group" and len(kept.media) < len(document.media):
            # How a picture is shown depends on how many stand beside it: what is left would be another picture.
            raise SkipSample(
                Reason.TOO_LONG,
                found=f"{len(document.media)} media that were shown together, {len(kept.media)} of them kept",
                wanted="all of them or none",
                where=str(document.key),
            )
        rows = extent(kept, field)
        if rows or field.axis == "token":
            tensors[name] = _narrowed(tensor.narrow(field.dim, 0, rows), kept, field)
    spans = tuple((start, min(stop, tokens)) for start, stop in encoded.spans if start < tokens)
    if not bool((tensors["labels"] != IGNORE_INDEX).any()):
        raise SkipSample(
            Reason.NO_LABEL_TOKENS,
            found=f"no label among the first {tokens} tokens",
            wanted="at least one token to train on",
            where=str(document.key),
        )
    return replace(encoded, document=kept, spans=spans, tensors=tensors)


def insert_unsaid(encoded: Encoded, tokens: Sequence[int]) -> Encoded:
    """The sample with `tokens` in front of everything the assistant says: seen, not trained on, of no medium."""
    places = [start for start, _ in encoded.spans]
    length = encoded.document.tokens

    def moved(place: int) -> int:
        return place + len(tokens) * sum(before <= place for before in places)

    fillings = {"input_ids": list(tokens), "labels": [IGNORE_INDEX] * len(tokens)}
    tensors = dict(encoded.tensors)
    for name, tensor in encoded.tensors.items():
        if tensor.ndim == 1 and len(tensor) == length and name in SEQUENCE_FIELDS:
            filling = tensor.new_tensor(fillings.get(name, [0] * len(tokens)))
            pieces = torch.tensor_split(tensor, places)
            tensors[name] = torch.cat([pieces[0], *(part for piece in pieces[1:] for part in (filling, piece))])
    media = tuple(
        replace(span, runs=tuple((moved(start), moved(stop - 1) + 1) for start, stop in span.runs))
        for span in encoded.document.media
    )
    document = replace(encoded.document, tokens=length + len(tokens) * len(places), media=media)
    spans = tuple((moved(start), moved(stop - 1) + 1) for start, stop in encoded.spans)
    return replace(encoded, document=document, spans=spans, tensors=tensors)


def shift(labels: Tensor, lengths: Iterable[int], last: int = IGNORE_INDEX) -> Tensor:
    """Move the labels of each document one to the left: place t holds what is predicted there, token t + 1.

    The `last` place of a document predicts nothing, so no document learns the first token of its neighbour:

    >>> shift(torch.tensor([-100, 5, 6, -100, 8]), [3, 2]).tolist()
    [5, 6, -100, 8, -100]
    """
    shifted = torch.roll(labels, shifts=-1, dims=-1)
    ends = torch.tensor(list(lengths), dtype=torch.long).cumsum(0) - 1
    shifted[..., ends] = last
    return shifted


def pad(tensor: Tensor, length: int, field: Field, value: int | None = None, *, left: bool = False) -> Tensor:
    """Lengthen a token field at its end, or on its left.

    >>> pad(torch.tensor([4, 5]), 4, Field(axis="token", pad=-100)).tolist()
    [4, 5, -100, -100]
    """
    missing = length - tensor.shape[field.dim]
    if missing == 0:
        return tensor
    shape = list(tensor.shape)
    shape[field.dim] = missing
    wanted = field.pad if value is None else value
    if wanted == "count":
        filling = torch.arange(missing, dtype=tensor.dtype).expand(shape)
    else:
        filling = tensor.new_full(shape, wanted)
    return torch.cat([filling, tensor] if left else [tensor, filling], dim=field.dim)


def stack(rows: Sequence[Tensor]) -> Tensor:
    """[T] rows → [B, T]; [4, T] rows → [4, B, T], as models want three-way positions."""
    return torch.stack(list(rows), dim=rows[0].ndim - 1)


def stack_padded(rows: Sequence[Tensor], length: int, field: Field, value: int | None = None) -> Tensor:
    """Rows of a token field as one tensor, each padded to `length`. A row that needs neither is not copied.

    >>> stack_padded([torch.tensor([1, 2]), torch.tensor([3])], 2, Field(axis="token")).tolist()
    [[1, 2], [3, 0]]
    """
    padded = [row if row.shape[field.dim] == length else pad(row, length, field, value) for row in rows]
    return stack(padded) if len(padded) > 1 else padded[0].unsqueeze(-2)


def row_axis(name: str, tensor: Tensor) -> int:
    """The axis on which a batched tensor has its rows: the first, but `stack` put those of a token field just before
    its tokens.

    >>> row_axis("position_ids", torch.zeros(4, 2, 9)), row_axis("attention_mask", torch.zeros(2, 1, 9, 9))
    (1, 0)
    """
    return tensor.ndim - 2 if name in TOKEN_FIELDS else 0


def cut(tensor: Tensor, sizes: Sequence[int], dim: int = 0) -> list[Tensor]:
    """Pieces of these sizes along one axis; together they are the whole tensor.

    >>> [piece.tolist() for piece in cut(torch.arange(5), [2, 0, 3])]
    [[0, 1], [], [2, 3, 4]]
    """
    return list(torch.split(tensor, list(sizes), dim=dim))


def declared_field(name: str, fields: Mapping[str, Field]) -> Field:
    """What the rows of a tensor count, by a family's table; an error by name where the family does not say."""
    if name not in fields:
        raise ExactnessError(
            found=f"a tensor {name!r} that the family does not declare",
            wanted=f"one of {', '.join(fields)}",
            consequence="nobody knows which sample its rows belong to",
        )
    return fields[name]
