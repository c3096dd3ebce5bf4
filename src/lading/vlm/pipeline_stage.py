"""Media at the first stage of a pipeline, for one call of its schedule.

`torch.distributed.pipelining` splits every tensor of a step by rows, and media have other rows than the batch. So they
wait here, cut beforehand, and each microbatch's share is added to the keyword inputs of the first stage when the
schedule runs that microbatch, as if it had been passed to `step`:

    schedule.step(input_ids, …)  →  stage 0, microbatch i:  module(ids_i, …, pixel_values=chunks["pixel_values"][i])

What is asked of a pipeline, `pp`, is the first of these that it offers:

    pp.info.has_first_stage      false: nothing is done on this rank
    pp.info.stages               torch's stage objects on this rank
    pp.info.schedule             a torch schedule
    pp                           a torch schedule, or a list of stages

Where only `has_first_stage` is said (a schedule of one's own, without torch's stages), the calls of `model_parts[0]`
are counted instead: the first gets the media of microbatch 0, and so on.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from lading.errors import ConfigError
from lading.private_names import FIRST_PASS, first_pass_of, microbatches_of, stages_of


@runtime_checkable
class Stage(Protocol):
    """What is used of torch's pipeline stages."""

    is_first: bool
    device: torch.device
    forward_one_chunk: Callable[..., Any]
    """(microbatch, args, kwargs, …): the forward pass of one microbatch."""


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
    if isinstance(pp, list | tuple):
        return [stage for stage in pp if isinstance(stage, Stage)]
    return stages_of(pp) or []


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
    return microbatches_of(schedule)


@dataclass(slots=True)
class Waiting:
    """Media that wait for their microbatches."""

    chunks: Mapping[str, Sequence[Any]]
    shown: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        lengths = {name: len(parts) for name, parts in self.chunks.items()}
        if len(set(lengths.values())) > 1:
            raise ConfigError(found=f"media for {lengths} microbatches", wanted="equally many of each")

    @property
    def pieces(self) -> int:
        """For how many microbatches the media were cut."""
        return len(next(iter(self.chunks.values())))

    def share(self, microbatch: int, device: torch.device | None = None) -> dict[str, Any]:
        """What belongs to one microbatch, on the stage's device. What it has nothing of is left out."""
        if not 0 <= microbatch < self.pieces:
            raise ConfigError(
                found=f"a schedule that runs microbatch {microbatch + 1}",
                wanted=f"{self.pieces} microbatches, for which the media were cut",
            )
        own = {name: parts[microbatch] for name, parts in self.chunks.items() if parts[microbatch] is not None}
        return own if device is None else {name: _moved(value, device) for name, value in own.items()}

    def check_schedule(self, pp: Any) -> None:
        """Refuse a schedule of another number of microbatches, where it says: on all ranks, before any waits."""
        found = count_microbatches(pp)
        if found is not None and found != self.pieces:
            raise ConfigError(
                found=f"a schedule of {found} microbatches", wanted=f"{self.pieces}, for which the media were cut"
            )

    def check_all_shown(self) -> None:
        """A schedule of fewer microbatches would have left media out; one that never ran may be meant."""
        if not self.shown:
            warnings.warn("media were staged for a pipeline schedule that did not run", stacklevel=4)
        elif len(self.shown) < self.pieces:
            raise ConfigError(
                found=f"a schedule that ran {len(self.shown)} microbatches",
                wanted=f"{self.pieces}, for which the media were cut",
                consequence="media were left out",
            )


def _moved(value: Any, device: torch.device) -> Any:
    if isinstance(value, list):
        return [_moved(entry, device) for entry in value]
    return value.to(device, non_blocking=True) if isinstance(value, Tensor) else value


@contextmanager
def staged_media(
    pp: Any, model_parts: Sequence[nn.Module], chunks: Mapping[str, Sequence[Any]] | None
) -> Iterator[None]:
    """Media at the first stage while the block runs; taken away again at its end, also when the schedule fails."""
    if not chunks:
        yield
        return
    waiting = Waiting(chunks)
    waiting.check_schedule(pp)
    place = first_stage(pp, model_parts)
    if place is None:
        yield
        return
    with _at_calls(place, waiting) if isinstance(place, nn.Module) else _at_stage(place, waiting):
        yield
    waiting.check_all_shown()


@contextmanager
def _at_stage(stage: Stage, waiting: Waiting) -> Iterator[None]:
    forward, first_pass = stage.forward_one_chunk, first_pass_of(stage)

    def with_media(
        microbatch: int, args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any
    ) -> Any:
        own = waiting.share(microbatch, stage.device)
        waiting.shown.add(microbatch)
        return forward(microbatch, args, {**(kwargs or {}), **own}, *rest, **options)

    def first_with_media(args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any) -> Any:
        # Without the first microbatch's media, a vision tower that alone is trained would seem to need no gradients,
        # and would get none ever after.
        assert first_pass is not None
        return first_pass(args, {**(kwargs or {}), **waiting.share(0, stage.device)}, *rest, **options)

    with ExitStack() as until:
        until.enter_context(_replaced(stage, "forward_one_chunk", with_media))
        if first_pass is not None:
            until.enter_context(_replaced(stage, FIRST_PASS, first_with_media))
        yield


@contextmanager
def _replaced(target: object, name: str, value: object) -> Iterator[None]:
    """An attribute of this one object hides its class's method for a while."""
    before = vars(target).get(name)
    setattr(target, name, value)
    try:
        yield
    finally:
        delattr(target, name)
        if before is not None:
            setattr(target, name, before)


@contextmanager
def _at_calls(module: nn.Module, waiting: Waiting) -> Iterator[None]:
    def add_media(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        turn = len(waiting.shown)
        own = waiting.share(turn)
        waiting.shown.add(turn)
        return args, {**kwargs, **own}

    # Before other hooks, so that what casts or moves a module's inputs sees the media too.
    handle = module.register_forward_pre_hook(add_media, with_kwargs=True, prepend=True)
    try:
        yield
    finally:
        handle.remove()
