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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from lading.errors import ConfigError


def _asked(thing: object, name: str) -> Any:
    """What somebody else's object has under a name; `None` where it has none. torch's own names are private ones."""
    return getattr(thing, name, None)


def local_stages(pp: Any) -> list[Any]:
    """torch's stages on this rank, as far as `pp` names them.

    >>> local_stages("no pipeline")
    []
    """
    if (info := _asked(pp, "info")) is not None:
        return list(_asked(info, "stages") or local_stages(_asked(info, "schedule")))
    if (stage := _asked(pp, "_stage")) is not None:  # a schedule with one stage a rank
        return [stage]
    listed = pp if isinstance(pp, list | tuple) else _asked(pp, "_stages") or ()
    return [stage for stage in listed if _asked(stage, "forward_one_chunk") is not None]


def first_stage(pp: Any, model_parts: Sequence[nn.Module]) -> Any:
    """The first stage where it is on this rank; its module where `pp` names no stages; nothing on other ranks."""
    has_first = _asked(_asked(pp, "info"), "has_first_stage")
    if has_first is False:
        return None
    stages = local_stages(pp)
    first = next((stage for stage in stages if stage.is_first), None)
    if first is not None or (stages and has_first is None):
        return first
    if has_first is None or stages or not model_parts:
        raise ConfigError(
            found=f"{type(pp).__name__} with {len(stages)} stages and {len(model_parts)} model parts, none the first",
            wanted="pp.info with has_first_stage and stages or a schedule, a torch schedule, or a list of its stages",
            consequence="media would never reach the model",
        )
    return model_parts[0]


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
            self.refuse(f"that runs microbatch {microbatch + 1}")
        own = {name: parts[microbatch] for name, parts in self.chunks.items() if parts[microbatch] is not None}
        return own if device is None else {name: _moved(value, device) for name, value in own.items()}

    def refuse(self, schedule: str, consequence: str = "") -> NoReturn:
        raise ConfigError(
            found=f"a schedule {schedule}",
            wanted=f"{self.pieces} microbatches, for which the media were cut",
            consequence=consequence,
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
    # A schedule of another number of microbatches is refused on all ranks, before any waits.
    schedule = _asked(_asked(pp, "info"), "schedule")
    known = _asked(pp if schedule is None else schedule, "_n_microbatches")
    if known not in (None, waiting.pieces):
        waiting.refuse(f"of {known} microbatches")
    place = first_stage(pp, model_parts)
    if place is None:
        yield
        return
    with _at_calls(place, waiting) if isinstance(place, nn.Module) else _at_stage(place, waiting):
        yield
    if not waiting.shown:  # which may be meant
        warnings.warn("media were staged for a pipeline schedule that did not run", stacklevel=3)
    elif len(waiting.shown) < waiting.pieces:
        waiting.refuse(f"that ran {len(waiting.shown)} microbatches", "media were left out")


@contextmanager
def _at_stage(stage: Any, waiting: Waiting) -> Iterator[None]:
    forward, probe = stage.forward_one_chunk, _asked(stage, "_forward_metadata_inference")

    def with_media(
        microbatch: int, args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any
    ) -> Any:
        own = waiting.share(microbatch, stage.device)
        waiting.shown.add(microbatch)
        return forward(microbatch, args, {**(kwargs or {}), **own}, *rest, **options)

    def probe_with_media(args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any) -> Any:
        # Before its first step a stage learns shapes, and who needs gradients, from the first microbatch. Without its
        # media, a vision tower that alone is trained would seem to need no gradients, and would get none ever after.
        return probe(args, {**(kwargs or {}), **waiting.share(0, stage.device)}, *rest, **options)

    with ExitStack() as until:
        until.enter_context(_replaced(stage, "forward_one_chunk", with_media))
        if probe is not None:
            until.enter_context(_replaced(stage, "_forward_metadata_inference", probe_with_media))
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
