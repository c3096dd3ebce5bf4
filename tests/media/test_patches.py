"""The order of patches, for any patch: pixels of four bytes take a way of their own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from torchvision.transforms import InterpolationMode

from lading.media.raw import PatchCutter


@given(
    patch=st.integers(1, 7),
    merge=st.integers(1, 3),
    high=st.integers(1, 3),
    wide=st.integers(1, 3),
    seed=st.integers(0, 99),
)
def test_a_fourth_byte_changes_nothing(patch: int, merge: int, high: int, wide: int, seed: int) -> None:
    cutter = PatchCutter(patch=patch, merge=merge, depth=1, interpolation=InterpolationMode.BICUBIC)
    grid = (1, high * merge, wide * merge)
    pixels = np.random.default_rng(seed).integers(0, 256, (1, grid[1] * patch, grid[2] * patch, 4), np.uint8)
    found = cutter.cut([pixels], [grid])
    assert found.tolist() == cutter.cut([np.ascontiguousarray(pixels[..., :3])], [grid]).tolist()
    assert found.tolist() == _patch_by_patch(pixels[0, ..., :3], patch, merge)


def _patch_by_patch(picture: np.ndarray, patch: int, merge: int) -> list[list[int]]:
    """Squares of patches in reading order, each patch by itself: its channels one after the other."""
    side = patch * merge
    return [
        picture[top + y : top + y + patch, left + x : left + x + patch].transpose(2, 0, 1).reshape(-1).tolist()
        for top in range(0, len(picture), side)
        for left in range(0, picture.shape[1], side)
        for y in range(0, side, patch)
        for x in range(0, side, patch)
    ]
