"""Bytes become numbers in whatever carries them, on whatever device, in whatever type is wanted."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lading import PixelNormaliser
from lading.media.normalise import scaled
from lading.records import Batch, Microbatch, PixelScale

STILL = PixelScale(mean=(0.48, 0.46, 0.41), std=(0.27, 0.26, 0.28), factor=1 / 255, repeat=2)
MOVING = PixelScale(mean=(0.5, 0.5, 0.5), std=(0.5, 0.5, 0.5), factor=1 / 255)
SCALES = {"pixel_values": STILL, "pixel_values_videos": MOVING}


def bytes_of(rows: int, columns: int) -> torch.Tensor:
    return torch.randint(0, 256, (rows, columns), dtype=torch.uint8, generator=torch.Generator().manual_seed(rows))


def expected(pixels: torch.Tensor, scale: PixelScale) -> torch.Tensor:
    """The definition, in double precision, channel by channel."""
    planes = pixels.double().view(len(pixels), 3, pixels.shape[1] // 3)
    channels = [
        (planes[:, place] * scale.factor - scale.mean[place]) / scale.std[place]
        for place in range(3)
        for _ in range(scale.repeat)
    ]
    return torch.stack(channels, dim=1).flatten(1)


@pytest.mark.parametrize("scale", [STILL, MOVING])
@pytest.mark.parametrize("rows", [0, 1, 7])
def test_numbers_are_what_the_scale_says(scale: PixelScale, rows: int) -> None:
    pixels = bytes_of(rows, 12)
    found = scaled(pixels, scale)
    assert found.dtype == torch.float32
    assert found.shape == (rows, 12 * scale.repeat)
    assert torch.allclose(found.double(), expected(pixels, scale), rtol=0, atol=1e-6)


@pytest.mark.parametrize("scale", [STILL, MOVING])
def test_half_precision_is_the_full_one_rounded_once(scale: PixelScale) -> None:
    pixels = bytes_of(5, 12)
    assert torch.equal(scaled(pixels, scale, torch.bfloat16), scaled(pixels, scale).to(torch.bfloat16))


def test_the_bytes_stay_as_they_are() -> None:
    pixels = bytes_of(4, 12)
    before = pixels.clone()
    scaled(pixels, MOVING)
    assert torch.equal(pixels, before)


def inputs() -> dict[str, Any]:
    return {
        "input_ids": torch.tensor([[1, 2]]),
        "use_cache": False,
        "pixel_values": bytes_of(4, 12),
        "pixel_values_videos": bytes_of(6, 24),
    }


@pytest.mark.parametrize("carried", [Batch(inputs=inputs(), rows=()), Microbatch(inputs=inputs(), rows=()), inputs()])
def test_whatever_carries_them(carried: Any) -> None:
    normalise = PixelNormaliser(SCALES, dtype=torch.bfloat16)
    found = normalise(carried)
    assert type(found) is type(carried)
    values = found if isinstance(found, dict) else found.inputs
    assert values["pixel_values"].dtype == torch.bfloat16
    assert values["pixel_values"].shape == (4, 24)
    assert values["pixel_values_videos"].shape == (6, 24)
    assert values["input_ids"].dtype == torch.int64
    assert values["use_cache"] is False
    again = normalise(found)
    assert (again if isinstance(again, dict) else again.inputs)["pixel_values"] is values["pixel_values"]
    single = normalise(carried, dtype=torch.float32)
    assert (single if isinstance(single, dict) else single.inputs)["pixel_values"].dtype == torch.float32


def test_it_is_a_module_without_weights() -> None:
    normalise = PixelNormaliser(SCALES)
    assert not list(normalise.parameters())
    assert not normalise.state_dict()
    assert repr(normalise) == "PixelNormaliser(pixel_values, pixel_values_videos)"


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
@pytest.mark.parametrize("scale", [STILL, MOVING])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_device_gives_the_same(scale: PixelScale, dtype: torch.dtype) -> None:
    pixels = bytes_of(1000, 588)
    there = scaled(pixels.cuda(), scale, dtype)
    assert there.device.type == "cuda"
    assert torch.equal(there.cpu(), scaled(pixels, scale, dtype))


def test_the_default_type_of_torch_does_not_matter() -> None:
    scale = PixelScale(mean=(0.481, 0.457, 0.408), std=(0.268, 0.261, 0.275), factor=1 / 255)  # nobody else's
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        found = scaled(bytes_of(3, 12), scale)
    finally:
        torch.set_default_dtype(before)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), expected(bytes_of(3, 12), scale), atol=1e-5)
