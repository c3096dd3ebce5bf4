"""Bytes → what a model expects, where that is cheapest: on the accelerator, or at the end of a worker's work.

    batch = loader.normalise(batch.to("cuda"))

The arithmetic is the processor's own, in its order, so that the result is equal to the last bit on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from lading.records import Batch, Microbatch, PixelScale
from lading.tensors import room

CACHED_ROWS = 512
"""Patches that are scaled at a time on a CPU: few enough for its cache, so memory is gone through once."""

Carried = TypeVar("Carried", Batch, Microbatch, dict[str, Any])


def scaled(pixels: Tensor, scale: PixelScale, dtype: torch.dtype = torch.float32) -> Tensor:
    """Bytes [P, channels · …] as numbers a model expects, [P, channels · repeat · …].

    >>> scale = PixelScale(mean=(0.5,), std=(0.25,), factor=1 / 255, repeat=2)
    >>> scaled(torch.tensor([[0, 255]], dtype=torch.uint8), scale).tolist()
    [[-2.0, 2.0, -2.0, 2.0]]
    """
    mean, std = _constants(scale, pixels.device)
    rows, channels = len(pixels), len(scale.mean)
    each = math.prod(pixels.shape[1:]) // channels
    bytes_ = pixels.reshape(rows, channels, 1, each)
    numbers = room((rows, channels, scale.repeat, each), dtype, pixels.device)
    block = max(1, rows) if pixels.is_cuda else CACHED_ROWS
    for start in range(0, rows, block):
        # Scaled once, written as often as the model sees it, in the type it is wanted in.
        once = bytes_[start : start + block].to(torch.float32).sub_(mean).div_(std)
        numbers[start : start + block].copy_(once)
    return numbers.view(pixels.shape if scale.repeat == 1 else (rows, channels * scale.repeat * each))


def normalised(
    inputs: Mapping[str, Any], scales: Mapping[str, PixelScale], dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """The same inputs; those that are bytes, and have a scale, as numbers."""
    return {
        name: scaled(value, scales[name], dtype)
        if name in scales and isinstance(value, Tensor) and value.dtype == torch.uint8
        else value
        for name, value in inputs.items()
    }


class PixelNormaliser(nn.Module):
    """Turns the byte patches of a batch into what the model expects, on the device where the batch is.

    It takes a `Batch`, a `Microbatch` or a plain dict, and gives another of its kind. What is no bytes is passed on as
    it is, so it may stay in the loop whatever `pixels` is set to. It has no weights. `dtype` is what comes out; with
    that of the model, no copy in float32 is kept.
    """

    def __init__(self, scales: Mapping[str, PixelScale], *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.scales, self.dtype = dict(scales), dtype

    def forward(self, batch: Carried, dtype: torch.dtype | None = None) -> Carried:
        """The same batch with its pixels scaled."""
        wanted = dtype or self.dtype
        if isinstance(batch, dict):
            return normalised(batch, self.scales, wanted)
        return replace(batch, inputs=normalised(batch.inputs, self.scales, wanted))

    def extra_repr(self) -> str:
        """What `print` shows of it."""
        return ", ".join(self.scales)


@lru_cache(maxsize=64)
def _constants(scale: PixelScale, device: torch.device) -> tuple[Tensor, Tensor]:
    """Mean and deviation in bytes, [channels, 1, 1], reckoned as the processor does; moved to a device once."""
    return tuple(  # type: ignore[return-value]  # two of them
        (torch.tensor(numbers, dtype=torch.float32, device=device) * (1.0 / scale.factor)).view(-1, 1, 1)
        for numbers in (scale.mean, scale.std)
    )
