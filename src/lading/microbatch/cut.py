"""Cut a batch along its rows, as a pipeline schedule of torch takes it.

A medium follows its row because its document says so, whatever the shapes are.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from torch import Tensor

from lading.errors import ConfigError, ExactnessError
from lading.fields import BOUNDARIES, ROW_NAMES, Field
from lading.records import Batch, Document, Microbatch
from lading.tensors import cut, declared_field, extent, row_axis, width

if TYPE_CHECKING:
    from lading.records.batches import Input


Rows = Sequence[Sequence[Document]]


def piece_sizes(rows: int, pieces: int) -> list[int]:
    """How many rows each microbatch gets, as torch splits a batch: the first ones get one more where need be.

    >>> piece_sizes(7, 3)
    [3, 2, 2]
    """
    if not 1 <= pieces <= rows:
        raise ConfigError(
            found=f"{pieces} microbatches of {rows} rows",
            wanted=f"1 to {rows}" if rows else "at least one row",
            where="microbatches",
        )
    return [rows // pieces + (piece < rows % pieces) for piece in range(pieces)]


def piece_sums(numbers: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """One number for each row → their sum for each microbatch.

    >>> piece_sums([3, 1, 0, 0], [2, 2])
    [4, 0]
    """
    return [sum(numbers[rows]) for rows in piece_slices(sizes)]


def piece_slices(sizes: Sequence[int]) -> list[slice]:
    """Which rows each microbatch has.

    >>> piece_slices([2, 1])
    [slice(0, 2, None), slice(2, 3, None)]
    """
    return [slice(stop - size, stop) for size, stop in zip(sizes, accumulate(sizes), strict=True)]


def cut_batch(batch: Batch, pieces: int, *, fields: Mapping[str, Field] | None = None) -> list[Microbatch]:
    """A batch as microbatches: the exact inverse of joining, by its family's field table (`batch.fields`) alone.

    A microbatch without rows of a medium does not get its name: a vision tower fails on an empty tensor.
    """
    sizes = piece_sizes(len(batch.rows), pieces)
    table = batch.fields if fields is None else fields
    if not table:
        raise ConfigError(
            found="a batch without the field table of its family",
            wanted="a batch of a Loader, or fields=family.table",
            consequence="nobody knows which rows belong to which microbatch",
            where="microbatches",
        )
    inputs: list[dict[str, Input]] = [{} for _ in sizes]
    for name, value in batch.inputs.items():
        for own, part in zip(inputs, _cut(name, value, batch, sizes, table), strict=True):
            if part is not None:
                own[name] = part
    rows = (batch.rows[own] for own in piece_slices(sizes))
    return [Microbatch(inputs=own, rows=mine) for own, mine in zip(inputs, rows, strict=True)]


def _cut(
    name: str, value: Input, batch: Batch, sizes: Sequence[int], table: Mapping[str, Field]
) -> Sequence[Input | None]:
    if isinstance(value, int):
        return [value] * len(sizes)  # `use_cache`, and the length of the longest document, which may be another's
    if isinstance(value, Mapping):  # masks by the kind of layer
        masks = zip(*(cut(mask, sizes) for mask in value.values()), strict=True)
        return [dict(zip(value, own, strict=True)) for own in masks]
    if name in BOUNDARIES:
        return _boundaries(value, sizes, batch.tensor("input_ids").shape[1])
    if name in ROW_NAMES or declared_field(name, table).axis == "token":
        return cut(value, sizes, row_axis(name, value))
    return _media(name, value, batch.rows, sizes, table[name])


def _boundaries(boundaries: Tensor, sizes: Sequence[int], length: int) -> list[Tensor]:
    """Boundaries of documents, for each microbatch counted from its own first row."""
    ends = [(rows.start * length, rows.stop * length) for rows in piece_slices(sizes)]
    return [boundaries[(boundaries >= first) & (boundaries <= last)] - first for first, last in ends]


def _media(name: str, tensor: Tensor, rows: Rows, sizes: Sequence[int], field: Field) -> list[Tensor | None]:
    owned = piece_sums([sum(extent(document, field) for document in row) for row in rows], sizes)
    if sum(owned) != tensor.shape[field.dim]:
        raise ExactnessError(
            found=f"{tensor.shape[field.dim]} rows of {name!r}",
            wanted=f"{sum(owned)}, as the documents of {len(rows)} rows carry",
            consequence="media would go to the wrong microbatch",
        )
    parts = zip(cut(tensor, owned, field.dim), piece_slices(sizes), strict=True)
    return [_narrowed(part, rows[mine], field) if part.shape[field.dim] else None for part, mine in parts]


def _narrowed(part: Tensor, rows: Rows, field: Field) -> Tensor:
    """A microbatch's own share of a stretched field: what was filled up for a wider medium of another is cut off."""
    if field.stretch is None:
        return part
    widest = max(width(document, field) for row in rows for document in row)
    return cut(part, [widest, part.shape[field.stretch] - widest], field.stretch)[0]


TARGETS = ("labels", "shift_labels")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PipelineBatch(Batch):
    """A batch for one step of a pipeline schedule. Law: its microbatches, one behind the other, are the batch."""

    pieces: int
    """Into how many microbatches it is cut."""

    @classmethod
    def of(cls, batch: Batch, pieces: int) -> PipelineBatch:
        """The same batch, to be cut into `pieces` microbatches."""
        return cls(**{own.name: attrgetter(own.name)(batch) for own in fields(Batch)}, pieces=pieces)

    @property
    def microbatches(self) -> list[Microbatch]:
        """The pieces of the batch, with their media."""
        return cut_batch(self, self.pieces)

    def step_inputs(self, *, first: bool, last: bool) -> dict[str, list[Any]]:
        """What a rank passes to `schedule.step(**…)` of `torch.distributed.pipelining`, cut already.

        The rank with the `first` stage of the model gets the ids, as the positional input, and the media; the rank with
        the `last` one gets the labels, shifted, as targets. Every rank gets what each decoder layer needs (positions,
        masks), as keywords of its stage.
        """
        _refuse_old_torch()
        names, pieces = self.keys(), self.microbatches
        media = {name for name, field in self.fields.items() if field.axis != "token"}
        left_out = {"input_ids", *TARGETS} if first else {"input_ids", *TARGETS, *media}
        wanted = [name for name in names if name not in left_out]
        step: dict[str, list[Any]] = {
            "kwarg_mbs": [{name: piece.inputs[name] for name in wanted if name in piece.inputs} for piece in pieces]
        }
        if first:
            step["arg_mbs"] = [(piece.inputs["input_ids"],) for piece in pieces]
        if last:
            step["target_mbs"] = [piece.inputs["shift_labels"] for piece in pieces]
        return step


def _refuse_old_torch() -> None:
    import torch
    from torch.distributed.pipelining import ScheduleGPipe

    if "arg_mbs" not in inspect.signature(ScheduleGPipe.step).parameters:
        raise ConfigError(
            found=f"torch {torch.__version__}, whose pipeline schedules split a batch by rows themselves",
            wanted="torch 2.14, whose schedules take microbatches that are cut already (arg_mbs, kwarg_mbs)",
            consequence="images would go to the wrong microbatch; lading.vlm.pp_media works with older versions",
        )
