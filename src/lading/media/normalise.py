"""Bytes → what a model expects, where that is cheapest: where the batch is used, or at the end of a worker's work.

    batch = batch.to("cuda")                     pixels="auto": scaled there; on the CPU, when they are first read
    batch = loader.normalise(batch.to("cuda"))   pixels="uint8": scaled by this call

The arithmetic is the processor's own, in its order, so that the result is equal to the last bit on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, TypeGuard, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lading.records import Batch, LazyPixels, Microbatch, PixelScale, held
from lading.tensors import empty_tensor

ONE_THREAD = 32_767
"""Numbers that are written at a time on a CPU. With one more, torch would use several threads; as many fit into a
cache, so memory is gone through once."""

Carried = TypeVar("Carried", Batch, Microbatch, dict[str, Any])


def scaled(pixels: Tensor, scale: PixelScale, dtype: torch.dtype | None = None) -> Tensor:
    """Bytes [P, channels · …] as numbers a model expects, [P, channels · repeat · …], in float32 unless asked.

    >>> scale = PixelScale(mean=(0.5,), std=(0.25,), factor=1 / 255, repeat=2)
    >>> scaled(torch.tensor([[0, 255]], dtype=torch.uint8), scale).tolist()
    [[-2.0, 2.0, -2.0, 2.0]]
    """
    rows, channels = len(pixels), len(scale.mean)
    each = math.prod(pixels.shape[1:]) // channels
    # Whoever reads first may do so where nothing is to be differentiated; who trains on them must not be hindered.
    with torch.inference_mode(False), torch.no_grad():
        bytes_ = pixels.reshape(rows, channels, 1, each)
        numbers = empty_tensor((rows, channels, scale.repeat, each), dtype or torch.float32, pixels.device)
        # Scaled once, written as often as the model sees it, in the type it is wanted in.
        if pixels.device.type == "cpu":
            _scale_in_blocks(bytes_, scale, numbers)
        else:
            mean, std = _constants(scale, pixels.device)
            numbers.copy_(bytes_.to(torch.float32).sub_(mean).div_(std))
        return numbers.view(pixels.shape if scale.repeat == 1 else (rows, channels * scale.repeat * each))


def _scale_in_blocks(bytes_: Tensor, scale: PixelScale, numbers: Tensor) -> None:
    """The same on a CPU, a few rows at a time, by one thread: torch's threads would wait for each other and for the
    cores that workers decode on, and take twenty times as long.
    """
    mean, std = (constant.numpy() for constant in _constants(scale, bytes_.device))
    pixels, rows = bytes_.numpy(), max(1, ONE_THREAD // max(1, math.prod(numbers.shape[1:])))
    for start in range(0, len(pixels), rows):
        once = np.subtract(pixels[start : start + rows], mean, dtype=np.float32)
        numbers[start : start + rows].copy_(torch.from_numpy(np.divide(once, std, out=once)))


def normalised(
    inputs: Mapping[str, Any], scales: Mapping[str, PixelScale], dtype: torch.dtype = torch.float32
) -> dict[str, Any]:
    """The same inputs; those that are bytes, and have a scale, as numbers."""
    found = dict(held(inputs))
    for name, value in found.items():
        if isinstance(value, LazyPixels):
            # What the batch itself would give is kept there, for the next reader.
            found[name] = value.read() if dtype == torch.float32 else value.read_as(dtype)
        elif name in scales and _is_bytes(value):
            found[name] = scaled(value, scales[name], dtype)
    return found


def scaled_when_read(batch: Batch, scales: Mapping[str, PixelScale]) -> Batch:
    """The same batch, whose bytes are scaled when they are first read, or where it is moved to."""
    return batch.with_inputs(
        {
            name: LazyPixels(value, partial(scaled, scale=scales[name]))
            for name, value in batch.inputs.items()
            if name in scales and _is_bytes(value)
        }
    )


def _is_bytes(value: object) -> TypeGuard[Tensor]:
    return isinstance(value, Tensor) and value.dtype == torch.uint8


class PixelNormaliser(nn.Module):
    """Turns the byte patches of a batch into what the model expects, on the device where the batch is.

    It takes a `Batch`, a `Microbatch` or a plain dict, and gives another of its kind. What was never bytes is passed on
    as it is, so it may stay in the loop whatever `pixels` is set to. It has no weights. `dtype` is what comes out; with
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
        return ", ".join(self.scales)


@lru_cache(maxsize=64)
def _constants(scale: PixelScale, device: torch.device) -> tuple[Tensor, Tensor]:
    """Mean and deviation in bytes, [channels, 1, 1], reckoned as the processor does; moved to a device once."""
    return tuple(  # type: ignore[return-value]  # two of them
        (torch.tensor(numbers, dtype=torch.float32, device=device) * (1.0 / scale.factor)).view(-1, 1, 1)
        for numbers in (scale.mean, scale.std)
    )
