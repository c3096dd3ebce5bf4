"""Documents side by side: joined tensors, per-document positions, document ids, and the one shift of the labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import torch

from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX, Field
from lading.packing.positions import ThreeWay, pack_positions
from lading.records import Dropped, Encoded, Pack
from lading.tensors import join, shift

UNCOUNTED: Final = -1
"""The number of a document that is none of the corpus, or does not count as one: a ledger passes it over."""


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
    lengths = [document.tokens for document in documents]
    # Positions and document ids are written for the whole pack at once, not joined.
    tensors = join([sample.tensors for sample in samples], fields)
    tensors["labels"] = shift(tensors["labels"], lengths)
    tensors["position_ids"] = pack_positions(documents, three_way)
    tensors["document_ids"] = torch.from_numpy(np.repeat(np.arange(1, len(documents) + 1), lengths))
    return Pack(number=number, documents=documents, tensors=tensors, dropped=tuple(dropped))


def without_labels(pack: Pack) -> Pack:
    """The pack with nothing to be trained on, its documents counted as none of the corpus."""
    documents = tuple(replace(own, key=replace(own.key, index=UNCOUNTED)) for own in pack.documents)
    labels = torch.full_like(pack.tensors["labels"], IGNORE_INDEX)
    return replace(pack, documents=documents, tensors={**pack.tensors, "labels": labels})


def empty_pack(like: Pack, *, fields: Mapping[str, Field]) -> Pack:
    """A row without documents, which is padding alone once it is in a batch with packs such as `like`."""
    tokens = {name: tensor[..., :0] for name, tensor in like.tensors.items() if fields[name].axis == "token"}
    return Pack(number=-1, documents=(), tensors=tokens)


def append_untrained(
    pack: Pack, sample: Encoded, *, fields: Mapping[str, Field], three_way: ThreeWay | None = None
) -> Pack:
    """The pack with one more document behind it that nothing is trained on."""
    untrained = {
        **sample.tensors,
        "labels": torch.full_like(sample.tensors["labels"], IGNORE_INDEX),
        "position_ids": pack_positions([sample.document], three_way),
        "document_ids": torch.full((sample.document.tokens,), len(pack.documents) + 1, dtype=torch.long),
    }
    return replace(pack, documents=(*pack.documents, sample.document), tensors=join([pack.tensors, untrained], fields))
