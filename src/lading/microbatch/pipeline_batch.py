"""What one step of a pipeline schedule takes."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any

from lading.errors import ConfigError
from lading.microbatch.cut import cut_batch
from lading.records import Batch, Microbatch

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
