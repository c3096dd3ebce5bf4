"""What is reckoned from a size alone equals what a processor makes of a blank picture of that size."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from transformers.models.gemma3.image_processing_gemma3 import Gemma3ImageProcessor
from transformers.models.llava_next.image_processing_llava_next import select_best_resolution
from transformers.models.phi4_multimodal.image_processing_phi4_multimodal import Phi4MultimodalImageProcessor

from lading.errors import SkipSample
from lading.family import Geometry
from lading.media.geometry.pictures import best_resolution, crop_grid, panned_crops, seen_in_crops
from lading.media.probe import Answer, Probe, image_probe
from lading.records import Footprint, ImageSize, Size
from tests.families.targets import TARGETS, facts_of

SIDES = st.integers(1, 3000)
SHOWN_SIDES = st.integers(1, 1600)
"""Blank pictures of such sides are made, by the dozen."""


def blank_phi4(processor: Any) -> Probe:
    numbers = processor.image_processor

    def ask(sizes: tuple[Size, ...]) -> Answer:
        blanks = [Image.new("RGB", (size.width, size.height)) for size in sizes if isinstance(size, ImageSize)]
        made = numbers(blanks)
        crop = numbers.size["height"] * numbers.size["width"]
        rows = [int(height) * int(width) // crop + 1 for height, width in made["image_sizes"]]
        return ["<|image|>" * tokens for tokens in made["num_img_tokens"]], rows

    return Probe(kind="image", pad="<|image|>", ask=ask)


BLANK: dict[str, Callable[[Any], Geometry]] = {
    "gemma3": partial(
        image_probe,
        pad="<image_soft_token>",
        rows=lambda made: [1 + int(crops) for crops in made["num_crops"]],
    ),
    "llava_onevision": partial(
        image_probe, pad="<image>", rows=lambda made: [len(tiles) for tiles in made["pixel_values"]]
    ),
    "phi4_mm": blank_phi4,
    "smolvlm": partial(
        image_probe,
        pad="<image>",
        rows=lambda made: [high * wide + 1 for high, wide in zip(made["rows"][0], made["cols"][0], strict=True)],
    ),
    "step3p7": partial(image_probe, pad="<im_patch>", rows=lambda made: made["num_local_patches"]),
}


def answer(geometry: Geometry, sizes: list[ImageSize]) -> list[Footprint] | str:
    try:
        return geometry.footprints(sizes)
    except SkipSample as skip:
        return str(skip.reason)


@pytest.mark.parametrize("target", [target for target in TARGETS if target.values[0][1] in BLANK])
@settings(max_examples=12, deadline=None)
@given(sizes=st.lists(st.tuples(SHOWN_SIDES, SHOWN_SIDES), min_size=1, max_size=3))
@example(sizes=[(1, 1)])
@example(sizes=[(3000, 1)])
@example(sizes=[(2500, 3000)])
@example(sizes=[(31, 200)])
@example(sizes=[(1, 3000), (900, 300)])
def test_reckoning_equals_asking(target: tuple[str, str], sizes: list[tuple[int, int]]) -> None:
    facts = facts_of(target)
    asked = BLANK[target[1]](facts.processor)
    shapes = [ImageSize(height=height, width=width) for height, width in sizes]
    assert answer(facts.geometries["image"], shapes) == answer(asked, shapes)


@settings(max_examples=300, deadline=None)
@given(SIDES, SIDES, st.sampled_from([64, 256]), st.integers(2, 6), st.sampled_from([1.0, 1.2, 2.0]))
def test_panned_crops(height: int, width: int, least: int, most: int, ratio: float) -> None:
    theirs = Gemma3ImageProcessor().pan_and_scan_batched(
        torch.empty(1, 3, height, width, device="meta"), least, most, ratio
    )
    assert panned_crops(height, width, least=least, most=most, ratio=ratio) == len(theirs)


@settings(max_examples=300, deadline=None)
@given(SIDES, SIDES, st.integers(1, 6))
def test_best_resolution(height: int, width: int, most: int) -> None:
    choices = [(384 * high, 384 * wide) for high in range(1, most + 1) for wide in range(1, most + 1)]
    assert best_resolution(height, width, choices) == tuple(select_best_resolution((height, width), choices))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12000), st.integers(1, 12000), st.sampled_from([1, 2, 7, 12, 36]))
@example(9000, 900, 8)
def test_crops_of_large_pictures(height: int, width: int, most: int) -> None:
    """Through their own function, on a picture without pixels: the mask it makes says which patches are seen."""
    numbers = Phi4MultimodalImageProcessor()
    blank = torch.empty(1, 1, 1).expand(3, height, width)
    side, patch = 112, 14
    grid = crop_grid(height, width, side=side, most=most)
    try:
        fitted, mask = numbers.dynamic_preprocess(blank, side, patch, side // patch, max_num=most)
    except ValueError:
        with pytest.raises(ValueError, match="very extreme"):
            seen_in_crops(height, width, grid, side=side, patch=patch)
        return
    assert fitted.shape[-2:] == (grid[0] * side, grid[1] * side)
    each = side // patch
    shown = mask.reshape(grid[0], each, grid[1], each)[:, 0::2, :, 0::2].reshape(grid[0] * each // 2, -1)
    high, wide = seen_in_crops(height, width, grid, side=side, patch=patch)
    assert (int(shown[:, 0].sum()), int(shown[0].sum())) == (high, wide)
