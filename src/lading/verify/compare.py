"""A batch's documents beside themselves alone: tokens, labels, positions, pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from lading.errors import ExactnessError, SkipSample
from lading.family import Family
from lading.fields import IGNORE_INDEX
from lading.loader import Samples
from lading.records import Batch, Conversation, Document
from lading.tensors import split
from lading.verify.alone import TYPES, model_inputs, own_inputs
from lading.verify.labels import labels_alone
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


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Alone:
    """One conversation by itself. Law: nothing in it went through `tokenise`, `materialise` or `collate`."""

    conversation: Conversation
    own: Mapping[str, Tensor]
    """What the processor gives."""
    inputs: Mapping[str, object]
    """What a model is fed."""
    labels: tuple[int, ...] | None
    """Unshifted; `None` where the chat template does not tell."""
    not_compared: str = ""
    """Why there are no labels."""

    @property
    def ids(self) -> Tensor:
        """[T]."""
        return self.own["input_ids"][0]


def alone(samples: Samples, index: int) -> Alone:
    """Sample `index` by itself."""
    facts, conversation = samples.facts, samples.conversation(index)
    own = own_inputs(facts, conversation, samples.encoder.footprints(conversation))
    labels, not_compared = None, ""
    try:
        labels = tuple(labels_alone(facts, conversation, own["input_ids"][0].tolist()))
    except SkipSample as skip:
        not_compared = f"labels: {skip.found}"
    return Alone(
        conversation=conversation,
        own=own,
        inputs=model_inputs(facts, own, conversation),
        labels=labels,
        not_compared=not_compared,
    )


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
    """Tokens, and what the model is told each of them is."""
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
