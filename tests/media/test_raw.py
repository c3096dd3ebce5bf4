"""Byte patches, scaled, are what the processor itself makes: for any size, any kind of file, and any clip."""

from __future__ import annotations

import io
from copy import copy
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image
from transformers.image_utils import load_image
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil
from transformers.models.qwen2_vl.image_processing_qwen2_vl import Qwen2VLImageProcessor

from lading import families, media, toy
from lading.encode import Encoder
from lading.errors import ConfigError, SkipSample
from lading.loader import ProcessorFacts, load_processor, read_processor
from lading.media import image
from lading.media.normalise import normalised
from lading.media.raw import TOLERANCE
from lading.records import Footprint, MediaPart
from tests.support.shared import has_processor, real_processor

CAPABLE = tuple(name for name in families.names() if families.find(name).raw is not None)
REAL = [
    pytest.param(name, marks=pytest.mark.skipif(not has_processor(name), reason=f"no real {name} processor"))
    for name in CAPABLE
]
SIDES = st.integers(1, 300)


@cache
def facts(name: str, *, real: bool = False) -> ProcessorFacts:
    return read_processor(load_processor(real_processor(name) if real else f"toy:{name}"))


def noise(*shape: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (*shape, 3), np.uint8)


def picture(reference: object) -> MediaPart:
    return MediaPart(kind="image", reference=reference)


def clip(frames: int, height: int, width: int) -> MediaPart:
    return MediaPart(kind="video", reference=tuple(map(Image.fromarray, noise(frames, height, width))))


def footprint(own: ProcessorFacts, part: MediaPart) -> Footprint:
    return own.geometries[part.kind].footprints([media.measure(part)])[0]


def made(own: ProcessorFacts, *parts: MediaPart, draft: bool = False) -> dict[str, Any]:
    assert own.raw is not None
    footprints = [footprint(own, part) for part in parts]
    return own.raw.tensors(own.processor, "", parts, footprints, draft=draft)


def ours(own: ProcessorFacts, *parts: MediaPart) -> dict[str, Any]:
    assert own.raw is not None
    return normalised(made(own, *parts), own.raw.scales)


def same(found: torch.Tensor, wanted: torch.Tensor) -> bool:
    return found.shape == wanted.shape and float((found - wanted).abs().max()) <= TOLERANCE


def test_the_qwens_are_capable() -> None:
    assert CAPABLE == ("qwen2_5_vl", "qwen3_omni", "qwen3_vl")


@pytest.mark.parametrize("name", CAPABLE)
@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.tuples(SIDES, SIDES), min_size=1, max_size=3))
@example(sizes=[(1, 1)])
@example(sizes=[(56, 112)])
@example(sizes=[(64, 96), (64, 96)])
def test_pictures_of_any_size(name: str, sizes: list[tuple[int, int]]) -> None:
    own = facts(name)
    pictures = [Image.fromarray(noise(*size, seed=place)) for place, size in enumerate(sizes)]
    if any(max(size) > 200 * min(size) for size in sizes):
        with pytest.raises(SkipSample, match="a long side at most"):
            ours(own, *map(picture, pictures))
        return
    found = ours(own, *map(picture, pictures))
    theirs = own.processor.image_processor(images=pictures, return_tensors="pt")
    assert torch.equal(found["image_grid_thw"], theirs["image_grid_thw"])
    assert same(found["pixel_values"], theirs["pixel_values"])


@pytest.mark.parametrize("name", CAPABLE)
@settings(max_examples=15, deadline=None)
@given(frames=st.integers(1, 20), height=st.integers(30, 200), width=st.integers(30, 200))
@example(frames=3, height=45, width=61)
@example(frames=5, height=64, width=64)
def test_clips_of_any_size(name: str, frames: int, height: int, width: int) -> None:
    own = facts(name)
    part = clip(frames, height, width)
    try:
        planned = footprint(own, part)
    except SkipSample:
        return
    found = ours(own, part)
    # Omni's processor overrules its video processor's bounds, so its family says what it is really asked.
    theirs = own.family.tensors(own.processor, "", [part], [planned])
    assert torch.equal(found["video_grid_thw"], theirs["video_grid_thw"])
    assert same(found["pixel_values_videos"], theirs["pixel_values_videos"])


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize(("height", "width"), [(768, 1024), (333, 500), (40, 1000), (512, 512)])
def test_real_processors(name: str, height: int, width: int) -> None:
    own = facts(name, real=True)
    parts = [picture(Image.fromarray(noise(height, width))), clip(5, height // 2, width // 2)]
    theirs = own.family.tensors(own.processor, "", parts, [footprint(own, part) for part in parts])
    found = ours(own, *parts)
    for pixels in ("pixel_values", "pixel_values_videos"):
        assert same(found[pixels], theirs[pixels])


def drawn(mode: str, width: int = 61, height: int = 45) -> Image.Image:
    """A picture of a mode, with something in every channel."""
    if mode == "P":
        return Image.fromarray(noise(height, width)).convert("P")
    if mode == "1":
        return Image.fromarray(noise(height, width)).convert("1")
    bands = [
        Image.fromarray(noise(height, width, seed=place)[..., 0])
        for place in range(len(Image.new(mode, (1, 1)).getbands()))
    ]
    return bands[0] if len(bands) == 1 else Image.merge(mode, bands)


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("L", "png"),
        ("L", "jpg"),
        ("LA", "png"),
        ("RGBA", "png"),
        ("P", "png"),
        ("P", "gif"),
        ("1", "png"),
        ("RGB", "webp"),
        ("RGB", "jpg"),
        ("CMYK", "jpg"),
    ],
)
def test_files_of_every_kind(tmp_path: Path, mode: str, ending: str) -> None:
    path = tmp_path / f"picture.{ending}"
    drawn(mode).save(path)
    own = facts("qwen2_5_vl")
    with Image.open(path) as opened:
        theirs = own.processor.image_processor(images=[opened], return_tensors="pt")
    assert same(ours(own, picture(str(path)))["pixel_values"], theirs["pixel_values"])
    if "A" not in mode:
        # Reading a file, transformers leaves transparency out; its processors lay it on white.
        theirs = own.processor.image_processor(images=[load_image(str(path))], return_tensors="pt")
        assert same(ours(own, picture(str(path)))["pixel_values"], theirs["pixel_values"])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("ending", ["jpg", "png", "tif", "webp"])
def test_turned_files(tmp_path: Path, ending: str, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / f"turned.{ending}"
    drawn("RGB").save(path, exif=exif)
    own = facts("qwen3_vl")
    theirs = own.processor.image_processor(images=[load_image(str(path))], return_tensors="pt")
    found = ours(own, picture(str(path)))
    assert torch.equal(found["image_grid_thw"], theirs["image_grid_thw"])
    assert same(found["pixel_values"], theirs["pixel_values"])


@pytest.mark.parametrize("name", CAPABLE)
def test_a_still_picture_is_an_eighth_and_a_clip_a_quarter(name: str) -> None:
    own = facts(name)
    parts = [picture(Image.fromarray(noise(90, 120))), clip(6, 60, 80)]
    bytes_, numbers = made(own, *parts), ours(own, *parts)
    for pixels, share in (("pixel_values", 8), ("pixel_values_videos", 4)):
        assert bytes_[pixels].dtype == torch.uint8
        assert bytes_[pixels].nbytes * share == numbers[pixels].nbytes


def jpeg(width: int, height: int, orientation: int = 1) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    buffer = io.BytesIO()
    Image.fromarray(noise(height // 8, width // 8)).resize((width, height)).save(buffer, "JPEG", exif=exif)
    return buffer.getvalue()


@pytest.mark.parametrize("orientation", [1, 6])
def test_a_draft_is_smaller_and_never_too_small(orientation: int) -> None:
    part = picture(jpeg(1600, 800, orientation))
    whole = image.decode(part).size
    tall, wide = (200, 400) if orientation == 1 else (400, 200)
    assert image.decode(part, at_least=(tall, wide)).size == (whole[0] // 4, whole[1] // 4)
    assert image.decode(part, at_least=(tall + 1, wide)).size == (whole[0] // 2, whole[1] // 2)
    assert image.decode(part, at_least=(whole[1], whole[0])).size == whole


def test_a_draft_keeps_the_grid_and_changes_pixels_only_when_asked() -> None:
    own = facts("qwen2_5_vl")
    part = picture(jpeg(1600, 800))
    plain, draft = made(own, part), made(own, part, draft=True)
    assert torch.equal(plain["image_grid_thw"], draft["image_grid_thw"])
    assert plain["pixel_values"].shape == draft["pixel_values"].shape
    assert not torch.equal(plain["pixel_values"], draft["pixel_values"])
    apart = (plain["pixel_values"].float() - draft["pixel_values"].float()).abs().mean()
    assert apart < 4, "it is the same picture"
    scan = io.BytesIO()
    image.decode(part).save(scan, "PNG")
    png = picture(scan.getvalue())
    assert torch.equal(made(own, png)["pixel_values"], made(own, png, draft=True)["pixel_values"])


class Inverted(Qwen2VLImageProcessor):  # type: ignore[misc]  # transformers is not followed for types
    """Somebody's own processor: bright is dark."""

    def rescale_and_normalize(self, images: Any, *options: Any) -> Any:
        return super().rescale_and_normalize(255 - images, *options)


SIZE = {"shortest_edge": 4 * 28 * 28, "longest_edge": 32 * 28 * 28}


@pytest.mark.parametrize(
    "own",
    [Inverted(size=SIZE), Qwen2VLImageProcessor(size=SIZE, do_normalize=False), Qwen2VLImageProcessorPil(size=SIZE)],
)
def test_a_processor_that_does_otherwise_is_asked_itself(own: Any) -> None:
    processor = copy(toy.processor("qwen2_5_vl"))  # the toy itself is shared
    processor.image_processor = own
    other = read_processor(processor)
    assert other.raw is None
    with pytest.raises(ConfigError, match=r"uint8 pixels for Qwen2\.5-VL"):
        Encoder(facts=other, pixels="uint8")


@pytest.mark.parametrize("name", [name for name in families.names() if name not in CAPABLE])
@pytest.mark.parametrize("options", [{"pixels": "uint8"}, {"draft": True}])
def test_other_families_refuse_by_name(name: str, options: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        Encoder(facts=facts(name), **options)
    assert families.find(name).title in str(caught.value)
    assert "pixels='model'" in str(caught.value)
