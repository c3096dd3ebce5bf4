"""Documents side by side: joined tensors, per-document positions, document ids, and the one shift of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX, Field
from lading.materialise.positions import ThreeWay, document_positions
from lading.records import Dropped, Encoded, Pack
from lading.tensors import join, shift


def build_pack(
    samples: Sequence[Encoded],
    *,
    fields: Mapping[str, Field],
    three_way: ThreeWay | None = None,
    number: int = 0,
    dropped: Sequence[Dropped] = (),
) -> Pack:
    """One pack of encoded samples, in the given order."""
    if not samples:
        raise ConfigError(found="a pack without documents", wanted="at least one", where=f"pack {number}")
    documents = tuple(sample.document for sample in samples)
    parts = [_part(sample, place, three_way) for place, sample in enumerate(samples, start=1)]
    tensors = join(parts, fields)
    tensors["labels"] = shift(tensors["labels"], [document.tokens for document in documents])
    return Pack(number=number, documents=documents, tensors=tensors, dropped=tuple(dropped))


def append_untrained(
    pack: Pack, sample: Encoded, *, fields: Mapping[str, Field], three_way: ThreeWay | None = None
) -> Pack:
    """The pack with one more document behind it that nothing is trained on."""
    silent = _part(sample, len(pack.documents) + 1, three_way)
    silent["labels"] = torch.full_like(silent["labels"], IGNORE_INDEX)
    return replace(pack, documents=(*pack.documents, sample.document), tensors=join([pack.tensors, silent], fields))


def _part(sample: Encoded, place: int, three_way: ThreeWay | None) -> dict[str, Tensor]:
    """A document's tensors with its positions, and its place in the pack as document id."""
    return {
        **sample.tensors,
        "position_ids": document_positions(sample.document, three_way),
        "document_ids": torch.full((sample.document.tokens,), place, dtype=torch.long),
    }
