"""Who notices when somebody else's document changes.

Some documents of a batch get other words and other pixels; what the model makes of the rest must stay as it was. Not
one by one: for each binary digit of their places, first those with a 0 there are changed, then those with a 1. Any two
documents differ in a digit, so whoever sees whom, one of these passes shows it: 12 for 64 documents, not 64.

    >>> [sorted(group) for group in groups(3)]
    [[0, 2], [1], [0, 1], [2]]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from lading.fields import Field
from lading.records import Batch, Document
from lading.tensors import join, split
from lading.verify.compare import Place
from lading.verify.forward import run


@dataclass(kw_only=True, slots=True)
class Notice:
    """What a document noticed of changes elsewhere, and of its own."""

    elsewhere: float = 0.0
    """The largest change of its hidden states while only others were changed."""
    here: list[float] = field(default_factory=list)
    """The largest change of its hidden states, for every time it was changed itself."""


def groups(documents: int) -> Iterator[set[int]]:
    """Which documents are changed together, pass by pass."""
    for digit in range(max(0, documents - 1).bit_length()):
        for value in (0, 1):
            yield {place for place in range(documents) if place >> digit & 1 == value}


def notices(
    model: Any, batch: Batch, found: list[Place], hidden: Tensor, fields: Mapping[str, Field], fixed: Tensor
) -> list[Notice]:
    """What every document of a batch notices; `hidden` [B, S, D] is what the model makes of the batch as it is."""
    result = [Notice() for _ in found]
    for group in groups(len(found)):
        changed = run(model, perturbed(batch, found, group, fields, fixed).inputs).hidden
        moved = (changed - hidden).abs().amax(-1)
        for number, (place, notice) in enumerate(zip(found, result, strict=True)):
            most = place.of(moved).max().item()
            if number in group:
                notice.here.append(most)
            else:
                # What is no number is no equality either.
                notice.elsewhere = max(notice.elsewhere, most if most == most else float("inf"))
    return result


def perturbed(
    batch: Batch, found: list[Place], group: Collection[int], fields: Mapping[str, Field], fixed: Tensor
) -> Batch:
    """The batch with other words and negative pixels in the documents of a group. Tokens in `fixed` (marks, pads) stay,
    so that media keep their places.
    """
    ids = batch.tensor("input_ids").clone()
    words = torch.unique(ids[~torch.isin(ids, fixed)])
    for number in group:
        own = found[number].of(ids)  # a view: what is written here is written there
        free = ~torch.isin(own, fixed)
        own[free] = words[(torch.searchsorted(words, own[free]) + 1) % len(words)]
    inputs: dict[str, Any] = {**batch.inputs, "input_ids": ids}
    media = {name: batch.tensor(name) for name in fields if name in batch and fields[name].axis != "token"}
    return replace(batch, inputs={**inputs, **_negated(media, [place.document for place in found], group, fields)})


def _negated(
    media: Mapping[str, Tensor], documents: list[Document], group: Collection[int], fields: Mapping[str, Field]
) -> dict[str, Tensor]:
    parts = split(media, documents, fields)
    for number in group:
        parts[number] = {
            name: -tensor if _are_features(name, tensor) else tensor for name, tensor in parts[number].items()
        }
    return join(parts, fields)


def _are_features(name: str, tensor: Tensor) -> bool:
    """Pixels and sounds; masks may be numbers with a point too, but say where features are."""
    return tensor.is_floating_point() and tensor.ndim > 1 and "mask" not in name
