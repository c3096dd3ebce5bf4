"""What is asked of `pp`, the first of these that it offers:

    pp.info.has_first_stage      false: nothing is done on this rank
    pp.info.stages               torch's stage objects on this rank
    pp.info.schedule             a torch schedule
    pp                           a torch schedule, or a list of stages

Where only `has_first_stage` is said (a schedule of one's own, without torch's stages), the calls of `model_parts[0]`
are counted instead: the first gets the media of microbatch 0, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn

from lading.errors import ConfigError


@runtime_checkable
class Stage(Protocol):
    """What is used of torch's pipeline stages."""

    is_first: bool
    device: torch.device
    forward_one_chunk: Callable[..., Any]
    """(microbatch, args, kwargs, …): the forward pass of one microbatch."""


@runtime_checkable
class Probing(Protocol):
    """A stage that runs the first microbatch once before the first step, to learn shapes and who needs gradients."""

    _forward_metadata_inference: Callable[..., Any]


@runtime_checkable
class SingleSchedule(Protocol):
    """torch's schedules with one stage a rank."""

    _stage: Stage


@runtime_checkable
class MultiSchedule(Protocol):
    """torch's schedules with several stages a rank."""

    _stages: Sequence[Stage]


@runtime_checkable
class CountsMicrobatches(Protocol):
    """Any of torch's schedules."""

    _n_microbatches: int


@runtime_checkable
class Pipeline(Protocol):
    """What a training framework wraps around a schedule."""

    info: Any


@runtime_checkable
class KnowsStages(Protocol):
    """A framework's `info` with torch's stages."""

    stages: Sequence[Stage] | None


@runtime_checkable
class KnowsSchedule(Protocol):
    """A framework's `info` with a torch schedule."""

    schedule: Any


@runtime_checkable
class KnowsFirst(Protocol):
    """A framework's `info` that says whether the pipeline begins on this rank."""

    has_first_stage: bool


def local_stages(pp: Any) -> list[Stage]:
    """torch's stages on this rank, as far as `pp` names them.

    >>> local_stages("no pipeline")
    []
    """
    if isinstance(pp, Pipeline):
        named = pp.info.stages if isinstance(pp.info, KnowsStages) else None
        return list(named or local_stages(pp.info.schedule if isinstance(pp.info, KnowsSchedule) else None))
    if isinstance(pp, SingleSchedule):
        return [pp._stage]
    if isinstance(pp, MultiSchedule):
        return list(pp._stages)
    return [stage for stage in pp if isinstance(stage, Stage)] if isinstance(pp, list | tuple) else []


def first_stage(pp: Any, model_parts: Sequence[nn.Module]) -> Stage | nn.Module | None:
    """The first stage where it is on this rank; its module where `pp` names no stages; nothing on other ranks."""
    said = pp.info.has_first_stage if isinstance(pp, Pipeline) and isinstance(pp.info, KnowsFirst) else None
    if said is False:
        return None
    stages = local_stages(pp)
    first = next((stage for stage in stages if stage.is_first), None)
    if first is not None or (stages and said is None):
        return first
    if said is None or stages or not model_parts:
        raise ConfigError(
            found=f"{type(pp).__name__} with {len(stages)} stages and {len(model_parts)} model parts, none the first",
            wanted="pp.info with has_first_stage and stages or a schedule, a torch schedule, or a list of its stages",
            consequence="media would never reach the model",
        )
    return model_parts[0]


def count_microbatches(pp: Any) -> int | None:
    """How many microbatches the schedule runs, where it says so."""
    schedule = pp.info.schedule if isinstance(pp, Pipeline) and isinstance(pp.info, KnowsSchedule) else pp
    return schedule._n_microbatches if isinstance(schedule, CountsMicrobatches) else None
