"""Pictures, clips and sounds, as real files."""

import io
from pathlib import Path

import numpy as np
import pytest
import soundfile
from PIL import Image

from lading import media
from lading.errors import SkipSample
from lading.media import audio, image, video
from lading.records import AudioSize, ImageSize, MediaPart, VideoSize
from lading.toy.corpus import draw_clip, draw_picture


def picture(reference: object) -> MediaPart:
    return MediaPart(kind="image", reference=reference)


def encoded(mode: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    Image.new(mode, (30, 20), options.pop("color", 0)).save(buffer, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


@pytest.mark.parametrize("mode", ["L", "LA", "RGBA", "P", "CMYK", "I;16", "1"])
def test_every_mode_becomes_rgb(mode: str) -> None:
    part = picture(encoded(mode, format="TIFF"))
    assert media.measure(part) == ImageSize(height=20, width=30)
    decoded = image.decode(part)
    assert (decoded.mode, decoded.size) == ("RGB", (30, 20))


def test_a_bright_sixteen_bit_scan_is_not_clipped() -> None:
    values = np.array([[0, 32768, 65535]], dtype=np.uint16)
    assert np.asarray(image.to_rgb(Image.fromarray(values)))[0, :, 0].tolist() == [0, 128, 255]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_size_and_pixels_are_turned_alike(tmp_path: Path, orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    path = tmp_path / "turned.jpg"
    Image.new("RGB", (30, 20)).save(path, exif=exif)
    size = media.measure(picture(str(path)))
    decoded = image.decode(picture(str(path)))
    assert (size.width, size.height) == decoded.size  # type: ignore[union-attr]
    assert (decoded.size == (20, 30)) == (orientation >= 5)


def test_a_pil_image_is_taken_as_it_is() -> None:
    own = Image.new("RGB", (5, 7))
    assert media.measure(picture(own)) == ImageSize(height=7, width=5)
    assert image.decode(picture(own)) is own


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "bmp"])
def test_measuring_reads_no_pixels(tmp_path: Path, ending: str) -> None:
    """The last third is cut off: the size is still known, and decoding says what is wrong."""
    path = tmp_path / f"cut.{ending}"
    noise = np.random.default_rng(0).integers(0, 255, (100, 200, 3), dtype=np.uint8)
    Image.fromarray(noise).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    assert media.measure(picture(str(path))) == ImageSize(height=100, width=200)
    with pytest.raises(SkipSample) as caught:
        image.decode(picture(str(path)))
    assert caught.value.reason == "corrupt_media"
    assert str(path) in str(caught.value)
    with pytest.raises(SkipSample, match="cannot be read"), Image.open(path) as opened:
        image.decode(picture(opened))


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("no/such.png", "missing_media"),
        ("https://example.org/a.png", "unsupported_media"),
        (b"not a picture", "corrupt_media"),
        (b"", "corrupt_media"),
        (7, "bad_row"),
    ],
)
@pytest.mark.parametrize("kind", ["image", "video", "audio"])
def test_what_is_no_medium_is_named(reference: object, reason: str, kind: str) -> None:
    with pytest.raises(SkipSample) as caught:
        media.measure(MediaPart(kind=kind, reference=reference))  # type: ignore[arg-type]
    assert caught.value.reason == reason


def test_clips(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    draw_clip(path, "blue", "square", frames=17)
    part = MediaPart(kind="video", reference=str(path))
    assert media.measure(part) == VideoSize(frames=17, height=96, width=128, fps=8.0)
    everything = video.decode(part, range(17))
    assert everything.shape == (17, 96, 128, 3)
    assert np.array_equal(video.decode(part, [0, 5, 16]), everything[[0, 5, 16]])
    assert np.array_equal(video.decode(MediaPart(kind="video", reference=path.read_bytes()), [3]), everything[[3]])


def test_a_clip_shorter_than_promised_is_named(tmp_path: Path) -> None:
    path = tmp_path / "clip.mp4"
    draw_clip(path, "blue", "square", frames=5)
    with pytest.raises(SkipSample, match="ends before frame 9"):
        video.decode(MediaPart(kind="video", reference=str(path)), [0, 9])


def test_a_clip_given_as_frames(tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.png" for n in range(3)]
    for path in paths:
        draw_picture(path, "red", "circle", width=40, height=30)
    part = MediaPart(kind="video", reference=tuple(map(str, paths)), options={"fps": 4})
    assert media.measure(part) == VideoSize(frames=3, height=30, width=40, fps=4.0)
    assert video.decode(part, [0, 2]).shape == (2, 30, 40, 3)
    draw_picture(paths[1], "red", "circle", width=41, height=30)
    with pytest.raises(SkipSample, match="frames of 2 sizes"):
        media.measure(part)


def test_sound_is_one_channel_at_the_rate_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "tone.wav"
    tone = np.sin(np.arange(44_100) * 2 * np.pi * 440 / 44_100).astype(np.float32)
    soundfile.write(path, np.stack([tone, tone], axis=1), 44_100)
    part = MediaPart(kind="audio", reference=str(path))
    assert media.measure(part) == AudioSize(samples=44_100, rate=44_100)
    heard = audio.decode(part, 16_000)
    assert heard.shape == (16_000,)
    peak = np.abs(np.fft.rfft(heard)).argmax()
    assert peak == 440


def test_a_palette_with_alpha_lies_on_white(tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
    picture = Image.new("P", (8, 8))
    picture.putpalette(bytes(range(12)))
    picture.putdata([place % 4 for place in range(64)])
    picture.save(tmp_path / "a.png", transparency=bytes([0, 128, 255, 255]))
    decoded = image.decode(MediaPart(kind="image", reference=str(tmp_path / "a.png")))
    assert [decoded.getpixel((place, 0)) for place in range(4)] == [
        (255, 255, 255),
        (129, 129, 130),
        (6, 7, 8),
        (9, 10, 11),
    ]
    assert not [warning for warning in recwarn if "Palette" in str(warning.message)]
    with Image.open(tmp_path / "a.png") as given:
        image.to_rgb(given)
        assert "transparency" in given.info, "what was handed over is left as it is"


@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_a_colour_that_stands_for_nothing_lies_on_white(tmp_path: Path, mode: str) -> None:
    """A PNG without an alpha channel may name one of its colours transparent."""
    drawn = Image.new(mode, (4, 4), "black")
    drawn.putpixel((2, 0), 7 if mode == "L" else (7, 7, 7))
    drawn.save(tmp_path / "keyed.png", transparency=0 if mode == "L" else (0, 0, 0))
    decoded = image.decode(MediaPart(kind="image", reference=str(tmp_path / "keyed.png")))
    assert decoded.getpixel((0, 0)) == (255, 255, 255)
    assert decoded.getpixel((2, 0)) == (7, 7, 7)


def test_what_cannot_be_looked_at_is_not_called_missing(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(SkipSample, match=r"loop that cannot be read \(Too many levels of symbolic links\)") as skip:
        media.measure(MediaPart(kind="image", reference=str(tmp_path / "loop")))
    assert skip.value.reason == "corrupt_media"


def test_a_refusal_is_the_same_in_every_run() -> None:
    said = []
    for _ in range(2):
        with pytest.raises(SkipSample) as skip:
            media.measure(MediaPart(kind="image", reference=b"nothing at all"))
        said.append(str(skip.value))
    assert "0x" not in said[0]
    assert said[0] == said[1]
