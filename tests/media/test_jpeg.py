"""What libjpeg-turbo is asked for directly is what Pillow gives, to the bit; what may differ is left to Pillow."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from PIL import Image, features

from lading.errors import SkipSample
from lading.media import image, jpeg
from lading.records import ImageSize, MediaPart
from tests.support.shared import SHARED

REAL = sorted(SHARED.glob("data/mllm_demo/**/*.jpg"))
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "quality": st.integers(1, 100),
    "subsampling": st.sampled_from([0, 1, 2]),
    "progressive": st.booleans(),
    "optimize": st.booleans(),
    "restart_marker_rows": st.sampled_from([0, 1]),
}


def noise(height: int, width: int, seed: int = 0) -> Image.Image:
    coarse = np.random.default_rng(seed).integers(0, 256, (height // 8 + 1, width // 8 + 1, 3), np.uint8)
    return Image.fromarray(np.kron(coarse, np.ones((8, 8, 1), np.uint8))[:height, :width])


def written(picture: Image.Image, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG", **options)
    return file.getvalue()


def pillows(data: bytes) -> NDArray[np.uint8]:
    return np.asarray(image.decode(part(data)))


def part(reference: bytes | str) -> MediaPart:
    return MediaPart(kind="image", reference=reference)


def exif(orientation: int) -> Image.Exif:
    found = Image.Exif()
    found[0x0112] = orientation
    return found


@settings(deadline=None)
@given(
    height=st.integers(1, 90), width=st.integers(1, 90), seed=st.integers(0, 9), options=st.fixed_dictionaries(OPTIONS)
)
def test_an_ordinary_one_is_the_same_to_the_bit(height: int, width: int, seed: int, options: dict[str, Any]) -> None:
    data = written(noise(height, width, seed), **options)
    found = jpeg.pixels(data)
    assert found is not None
    assert np.array_equal(found[..., :3], pillows(data))
    assert image.measure(part(data)) == ImageSize(height=height, width=width)


@pytest.mark.skipif(not REAL, reason="no pictures in shared")
def test_real_photographs() -> None:
    for path in REAL:
        found = jpeg.pixels(path.read_bytes())
        assert found is not None, path
        assert np.array_equal(found[..., :3], np.asarray(Image.open(path)))


ODD = {
    "grey": written(noise(20, 30).convert("L")),
    "four inks": written(noise(20, 30).convert("CMYK")),
    "red, green and blue as they are": written(noise(20, 30), keep_rgb=True),
    "no JPEG": b"\x89PNG\r\n\x1a\n",
    "nothing": b"",
    "its first bytes alone": jpeg.MAGIC,
    "cut off": written(noise(200, 300))[:-600],
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_one_is_left_to_pillow(name: str) -> None:
    assert jpeg.pixels(ODD[name]) is None


@pytest.mark.parametrize("name", [name for name, data in ODD.items() if data.startswith(jpeg.MAGIC)][:3])
def test_and_opened_all_the_same(name: str) -> None:
    found = image.pixels(part(ODD[name]))
    assert np.array_equal(found[..., :3], pillows(ODD[name]))


@pytest.mark.parametrize("as_file", [False, True])
def test_one_that_is_cut_off_is_named(as_file: bool, tmp_path: Path) -> None:
    path = tmp_path / "cut.jpg"
    path.write_bytes(ODD["cut off"])
    with pytest.raises(SkipSample) as caught:
        image.pixels(part(str(path) if as_file else ODD["cut off"]))
    assert caught.value.reason == "corrupt_media"
    assert image.measure(part(str(path))) == ImageSize(height=200, width=300)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_one_is_turned(orientation: int, tmp_path: Path) -> None:
    path = tmp_path / "turned.jpg"
    path.write_bytes(written(noise(20, 30), exif=exif(orientation)))
    found = image.pixels(part(str(path)))
    assert np.array_equal(found[..., :3], np.asarray(image.decode(part(str(path)))))
    assert image.measure(part(str(path))) == ImageSize(height=len(found), width=found.shape[1])
    assert (found.shape[:2] == (30, 20)) == (orientation >= 5)


def test_one_turned_by_its_xmp() -> None:
    note = b'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf tiff:Orientation="6"/></x:xmpmeta>'
    data = written(noise(20, 30), xmp=note)
    assert pillows(data).shape == (30, 20, 3)
    assert image.pixels(part(data)).shape[:2] == (30, 20)
    assert image.measure(part(data)) == ImageSize(height=30, width=20)


def segment(marker: int, said: bytes) -> bytes:
    return bytes([0xFF, marker]) + (len(said) + 2).to_bytes(2, "big") + said


def with_frame(place: int, value: int) -> bytes:
    """A JPEG with one byte of its frame's header changed."""
    data = bytearray(written(noise(32, 48), subsampling=0))
    data[data.index(b"\xff\xc0") + place] = value
    return bytes(data)


SHORT = {
    "JFIF without a version": jpeg.MAGIC[:2] + segment(0xE0, b"JFIF\0") + written(noise(20, 30))[20:],
    "Adobe without a transform": jpeg.MAGIC[:2] + segment(0xEE, b"Adobe") + written(noise(20, 30))[2:],
    "a profile without numbers": jpeg.MAGIC[:2] + segment(0xE2, b"ICC_PROFILE\0") + written(noise(20, 30))[2:],
    "twelve bits": with_frame(4, 12),
}


@pytest.mark.parametrize("name", SHORT)
def test_what_pillow_refuses_is_refused(name: str) -> None:
    for asked in (image.decode, image.measure, image.pixels):
        with pytest.raises(SkipSample) as caught:
            asked(part(SHORT[name]))
        assert caught.value.reason == "corrupt_media"


def test_colours_left_out_in_a_way_without_a_name() -> None:
    data = with_frame(11, 0x14)
    found = image.pixels(part(data))
    assert np.array_equal(found[..., :3], pillows(data))
    assert image.measure(part(data)) == ImageSize(height=len(found), width=found.shape[1])


def test_bytes_that_do_not_belong_there() -> None:
    data = written(noise(60, 80))
    behind = data + b"a phone's own data"
    assert np.array_equal(image.pixels(part(behind))[..., :3], pillows(data))
    scan = data.index(b"\xff\xda")
    between = data[:scan] + b"\x00\x00\x00" + data[scan:]
    assert np.array_equal(image.pixels(part(between))[..., :3], pillows(between))


def test_a_long_header() -> None:
    data = written(noise(20, 30), icc_profile=bytes(1 << 17))
    assert image.measure(part(data)) == ImageSize(height=20, width=30)
    assert np.array_equal(image.pixels(part(data))[..., :3], pillows(data))


def test_one_larger_than_pillow_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    data = written(noise(20, 30))
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    assert jpeg.pixels(data) is None
    with pytest.raises(SkipSample, match="decompression bomb"):
        image.measure(part(data))


@pytest.fixture
def other_library() -> Iterator[None]:
    jpeg._library.cache_clear()
    yield
    jpeg._library.cache_clear()


@pytest.mark.usefixtures("other_library")
def test_without_the_library_pillow_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    data = written(noise(20, 30))
    assert jpeg.pixels(data) is None
    assert np.array_equal(image.pixels(part(data))[..., :3], pillows(data))
    assert image.measure(part(data)) == ImageSize(height=20, width=30)


@pytest.mark.usefixtures("other_library")
def test_a_library_that_sees_other_pixels_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import simplejpeg

    def rougher(data: bytes, colours: str) -> Any:
        return simplejpeg._jpeg.decode_jpeg(data, colours, fastdct=True, fastupsample=True)

    monkeypatch.setattr(simplejpeg, "decode_jpeg", rougher)
    assert jpeg.pixels(written(noise(20, 30))) is None


@pytest.mark.usefixtures("other_library")
def test_an_older_library_behind_pillow_is_not_mixed_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(features, "version_feature", lambda name: "2.1.5")
    assert jpeg.pixels(written(noise(20, 30))) is None


@pytest.mark.skipif(not features.check_feature("libjpeg_turbo"), reason="Pillow is built with another library")
def test_it_is_used_here() -> None:
    assert jpeg._library() is not None
