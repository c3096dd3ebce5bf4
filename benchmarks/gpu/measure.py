"""Steps of training, timed, and what is made of the times."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from benchmarks.gpu.feeds import Ahead, Mode, Source, batches
from benchmarks.gpu.flops import batch_flops
from benchmarks.gpu.shapes import Shape
from lading.attention import TOWER, use_varlen
from lading.records import Batch

PEAK = 989e12
"""Dense bfloat16 multiplications and additions a second of an H200, by its data sheet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One step: what it trained, and where its time went."""

    real_tokens: int
    places: int
    """Tokens with the padding."""
    patches: int
    flops: float
    waited: float
    """Seconds without a batch on the device: blocked in the iterator, and copying."""
    worked: float
    loss: float


def choose_attention(model: Any, language: str) -> None:
    """The tower by windows in one call, in every mode; the language model as the mode has it."""
    use_varlen(model)
    model.set_attn_implementation({"text_config": language, "vision_config": TOWER})


def compute_language_again(model: Any, again: bool) -> None:
    """Whether the language model's activations are thrown away and computed again on the way back."""
    for module in model.model.language_model.modules():
        if "gradient_checkpointing" in module.__dict__:
            module.gradient_checkpointing = again


def train(
    model: Any, optimizer: Any, source: Source, mode: Mode, shape: Shape, *, warmup: int, steps: int
) -> list[Step]:
    """Timed steps, after some that are not."""
    choose_attention(model, mode.language)
    device = next(model.parameters()).device
    wait = torch.cuda.synchronize if device.type == "cuda" else _nothing
    ahead = Ahead(batches(source, mode), pin=device.type == "cuda")
    try:
        taken = [_step(model, optimizer, ahead, shape, device, wait) for _ in range(warmup + steps)]
    finally:
        ahead.close()
    return taken[warmup:]


def _nothing() -> None:
    """A CPU has finished when it returns."""


def _step(
    model: Any, optimizer: Any, ahead: Ahead, shape: Shape, device: torch.device, wait: Callable[[], None]
) -> Step:
    began = time.perf_counter()
    held = ahead.get()
    batch = held.to(device, non_blocking=True)
    wait()
    fed = time.perf_counter()
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    wait()
    done = time.perf_counter()
    return Step(
        real_tokens=real_tokens(held),
        places=held.tensor("input_ids").numel(),
        patches=held.tensor("pixel_values").shape[0] if "pixel_values" in held else 0,
        flops=batch_flops(held, shape),
        waited=fed - began,
        worked=done - fed,
        loss=float(loss.detach()),
    )


def real_tokens(batch: Batch) -> int:
    """Tokens of documents."""
    return sum(document.tokens for row in batch.rows for document in row)


def figures(steps: list[Step]) -> dict[str, Any]:
    """What the steps of a mode come to."""
    seconds = sum(step.waited + step.worked for step in steps)
    tokens = sum(step.real_tokens for step in steps)
    return {
        "real_tokens_per_second": tokens / seconds,
        "places_per_second": sum(step.places for step in steps) / seconds,
        "patches_per_second": sum(step.patches for step in steps) / seconds,
        "padding_share": 1 - tokens / sum(step.places for step in steps),
        "idle_share": sum(step.waited for step in steps) / seconds,
        "longest_wait_seconds": max(step.waited for step in steps),
        "seconds_per_step": seconds / len(steps),
        "real_tokens_per_step": tokens / len(steps),
        "model_flop_utilisation": sum(step.flops for step in steps) / seconds / PEAK,
        "steps": [asdict(step) for step in steps],
    }


def supply(source: Source, mode: Mode, *, count: int) -> float:
    """Real tokens a second that the workers deliver to one who only takes, from the second batch of each on."""
    taken = batches(source, mode, epoch=1)
    for _ in range(max(1, source.loader.config.num_workers)):
        next(taken)
    began = time.perf_counter()
    tokens = sum(real_tokens(next(taken)) for _ in range(count))
    seconds = time.perf_counter() - began
    taken.close()
    return tokens / seconds
