"""Media at the first stage of a pipeline, for one call of its schedule.

`torch.distributed.pipelining` splits every tensor of a step by rows, and media have other rows than the batch. So they
wait here, cut beforehand, and each microbatch's share is added to the keyword inputs of the first stage when the
schedule runs that microbatch, as if it had been passed to `step`:

    schedule.step(input_ids, …)  →  stage 0, microbatch i:  module(ids_i, …, pixel_values=chunks["pixel_values"][i])

`lading.microbatch.pipeline` says what is asked of a pipeline.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lading.errors import ConfigError
from lading.microbatch.pipeline import Probing, Stage, count_microbatches, first_stage


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
    forward, probe = stage.forward_one_chunk, stage._forward_metadata_inference if isinstance(stage, Probing) else None

    def with_media(
        microbatch: int, args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any
    ) -> Any:
        own = waiting.share(microbatch, stage.device)
        waiting.shown.add(microbatch)
        return forward(microbatch, args, {**(kwargs or {}), **own}, *rest, **options)

    def probe_with_media(args: Any, kwargs: Mapping[str, Any] | None = None, *rest: Any, **options: Any) -> Any:
        # The probe sees the first microbatch. Without its media, a vision tower that alone is trained would seem to
        # need no gradients, and would get none ever after.
        assert probe is not None
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
