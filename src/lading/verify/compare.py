"""A batch's documents beside themselves alone: tokens, labels, positions, pixels, and who sees whose tokens.

For the last, some documents of a batch get other words and other pixels; what the model makes of the rest must stay as
it was. Not one by one: for each binary digit of their places, first those with a 0 there are changed, then those with a
1. Any two documents differ in a digit, so whoever sees whom, one of these passes shows it: 12 for 64 documents, not 64.

    >>> [sorted(group) for group in groups(3)]
    [[0, 2], [1], [0, 1], [2]]
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from lading.errors import ExactnessError
from lading.family import Family
from lading.fields import IGNORE_INDEX, Field
from lading.records import Batch, Document
from lading.tensors import join, split
from lading.verify.alone import TYPES, Alone
from lading.verify.model import run
from lading.verify.result import Aspect, Difference

POSITION_ROUNDING = 1e-4
"""How far positions between whole numbers may be rounded apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """Where a document lies in a batch."""

    document: Document
    row: int
    start: int

    @property
    def stop(self) -> int:
        """One past its last token."""
        return self.start + self.document.tokens

    def of(self, tensor: Tensor) -> Tensor:
        """The document's own share of a tensor [..., B, S]."""
        return tensor[..., self.row, self.start : self.stop]

    def differs(self, aspect: Aspect, detail: str) -> Difference:
        """This document, named as different."""
        return Difference(where=self.document.key.where, aspect=aspect, detail=detail)


def places(batch: Batch) -> list[Place]:
    """The documents of a batch, row by row."""
    found = []
    for row, documents in enumerate(batch.rows):
        start = 0
        for document in documents:
            found.append(Place(document=document, row=row, start=start))
            start += document.tokens
    return found


def compare_tokens(batch: Batch, place: Place, other: Alone) -> Iterator[Difference]:
    """Tokens, and the type of each, where the model takes types."""
    ids = place.of(batch.tensor("input_ids"))
    if ids.tolist() != other.ids.tolist():
        yield place.differs("tokens", _first_difference(ids.tolist(), other.ids.tolist()))
    for name in TYPES:
        if name in batch and name in other.own:
            types, own = place.of(batch.tensor(name)).tolist(), other.own[name][0].tolist()
            if types != own:
                yield place.differs("tokens", f"{name}: {_first_difference(types, own)}")


def compare_labels(batch: Batch, place: Place, other: Alone) -> Iterator[Difference]:
    """Labels, under both names a model may look for them, each place holding the token that comes next."""
    if other.labels is None:
        return
    wanted = [*other.labels[1:], IGNORE_INDEX]
    for name in ("labels", "shift_labels"):
        if name not in batch:
            yield place.differs("labels", f"{name} is missing here")
            continue
        found = place.of(batch.tensor(name)).tolist()
        if found != wanted:
            yield place.differs("labels", f"{name}: {_first_difference(found, wanted)}")


def compare_tails(batch: Batch, found: list[Place]) -> Iterator[Difference]:
    """Behind the last document of a row nothing may be trained on."""
    for row in range(len(batch.rows)):
        last = max((place for place in found if place.row == row), key=lambda place: place.stop, default=None)
        if last is None:
            continue
        for name in ("labels", "shift_labels"):
            if name in batch and bool((batch.tensor(name)[row, last.stop :] != IGNORE_INDEX).any()):
                yield last.differs("labels", f"{name}: tokens behind it are trained on and belong to no document")


def compare_positions(batch: Batch, place: Place, own: Tensor) -> Iterator[Difference]:
    """Positions [T] or [3, T] that the model itself gave the document alone; a fourth row in front counts tokens."""
    found = place.of(batch.tensor("position_ids"))
    if found.ndim == 2 and len(found) == 4:
        counted = list(range(place.document.tokens))
        if found[0].tolist() != counted:
            yield place.differs("positions", f"in front: {_first_difference(found[0].tolist(), counted)}")
        found = found[1:]
    if found.shape != own.shape:
        yield place.differs("positions", f"{tuple(found.shape)} here, {tuple(own.shape)} alone")
    elif not torch.allclose(found.double(), own.double(), rtol=0, atol=POSITION_ROUNDING):
        worst = (found.double() - own.double()).abs().max().item()
        yield place.differs("positions", f"up to {worst:g} apart")


def compare_pixels(
    batch: Batch, found: list[Place], others: Mapping[int, Alone], family: Family
) -> Iterator[Difference]:
    """Every media tensor of every document, cut out of the batch by what its record carries."""
    media = {name: batch.tensor(name) for name in family.fields if name in batch}
    try:
        parts = split(media, [place.document for place in found], family.table)
    except ExactnessError as error:
        yield from (place.differs("pixels", str(error)) for place in found if place.document.media)
        return
    for place, part in zip(found, parts, strict=True):
        own = others[place.document.key.index].own
        for name in family.fields:
            if name in own and not (name in part and torch.equal(part[name], own[name])):
                yield place.differs("pixels", f"{name} {_shape(part.get(name))} here, {_shape(own[name])} alone")


def _shape(tensor: Tensor | None) -> str:
    return "missing" if tensor is None else str(list(tensor.shape))


def _first_difference(found: list[int], wanted: list[int]) -> str:
    """Where two lists part.

    >>> _first_difference([1, 2, 3], [1, 5, 3])
    'token 1 is 2 here, 5 alone'
    """
    if len(found) != len(wanted):
        return f"{len(found)} tokens here, {len(wanted)} alone"
    place = next(number for number, (one, other) in enumerate(zip(found, wanted, strict=True)) if one != other)
    return f"token {place} is {found[place]} here, {wanted[place]} alone"


@dataclass(kw_only=True, slots=True)
class HiddenChange:
    """How far a document's last hidden states moved."""

    by_others: float = 0.0
    """The most they moved while only other documents were changed."""
    by_itself: list[float] = field(default_factory=list)
    """The most they moved, for every time it was changed itself."""


def groups(documents: int) -> Iterator[set[int]]:
    """Which documents are changed together, pass by pass."""
    for digit in range(max(0, documents - 1).bit_length()):
        for value in (0, 1):
            yield {place for place in range(documents) if place >> digit & 1 == value}


def hidden_changes(
    model: Any, batch: Batch, found: list[Place], hidden: Tensor, fields: Mapping[str, Field], fixed: Tensor
) -> list[HiddenChange]:
    """How changes move the hidden states of every document of a batch; unchanged they are `hidden` [B, S, D]."""
    result = [HiddenChange() for _ in found]
    for group in groups(len(found)):
        changed = run(model, perturbed(batch, found, group, fields, fixed).inputs).hidden
        moved = (changed - hidden).abs().amax(-1)
        for number, (place, change) in enumerate(zip(found, result, strict=True)):
            most = place.of(moved).max().item()
            if number in group:
                change.by_itself.append(most)
            else:
                # Not a number is not equal either.
                change.by_others = max(change.by_others, most if most == most else float("inf"))
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
