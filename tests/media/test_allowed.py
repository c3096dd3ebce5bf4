"""What a row names is opened only as a usual picture, clip or sound, and no other file with it."""

import json
import os
import subprocess
import sys
import wave
from pathlib import Path
from subprocess import CalledProcessError

import av
import pytest
from PIL import Image

from lading import CorpusError, Loader, media
from lading.errors import SkipSample
from lading.media import audio, image, video
from lading.media.content import content_of
from lading.media.opening import CODECS, PICTURES
from lading.records import ImageSize, MediaPart
from lading.toy.corpus import draw_clip, draw_picture

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 20 20
%%EndComments
0 0 20 20 rectfill
showpage
%%EOF
"""


@pytest.fixture
def ghostscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program named `gs` first on the PATH; the file it writes when it is started."""
    mark, program = tmp_path / "started", tmp_path / "bin" / "gs"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho started >> {mark}\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return mark


def refusal(kind: str, reference: object, look: object) -> SkipSample:
    with pytest.raises(SkipSample) as caught:
        look(MediaPart(kind=kind, reference=reference))  # type: ignore[operator, arg-type]
    return caught.value


def test_a_picture_starts_no_program(tmp_path: Path, ghostscript: Path) -> None:
    """PostScript in a file that is named like a photograph: Pillow by itself starts what is called `gs`."""
    path = tmp_path / "cat.jpg"
    path.write_bytes(EPS)
    for reference in (str(path), EPS):
        for look in (media.measure, image.decode, image.pixels):
            skip = refusal("image", reference, look)
            assert (skip.reason, "PostScript" in skip.found) == ("format_not_allowed", True)
    assert not ghostscript.exists()
    with pytest.raises((OSError, CalledProcessError)), Image.open(path) as picture:
        picture.load()
    assert ghostscript.exists(), "the stand-in was never in the way of Pillow: this test could not fail"


def test_a_data_set_starts_none_either_however_deep_its_pictures_lie(ghostscript: Path) -> None:
    """`datasets` decodes by Pillow on its own, also what is handed to a transform."""
    datasets = pytest.importorskip("datasets")
    stored, kind = {"path": None, "bytes": EPS}, datasets.Image()
    words = {"question": "Who?", "answer": "Ada."}
    for images, feature in ((stored, kind), ([stored], datasets.List(kind)), ([{"one": stored}], [{"one": kind}])):
        types = {"images": feature, **dict.fromkeys(words, datasets.Value("string"))}
        rows = datasets.Dataset.from_list([{"images": images, **words}], features=datasets.Features(types))
        for given in (rows, rows.with_transform(lambda batch: batch), rows.with_format("numpy")):
            with pytest.raises(CorpusError, match=r"format_not_allowed|bad_row"):
                Loader(given, "toy:qwen2_5_vl", pack_size=512, format="question_answer")
    assert not ghostscript.exists()
    with pytest.raises((OSError, CalledProcessError)):
        rows.with_transform(lambda batch: batch)[0]
    assert ghostscript.exists(), "datasets never looked at them by itself: this test could not fail"


def test_the_doctor_says_so_without_decoding(tmp_path: Path, ghostscript: Path) -> None:
    (tmp_path / "cat.jpg").write_bytes(EPS)
    (tmp_path / "list.mp4").write_text("ffconcat version 1.0\nfile secret.mp4\n")
    talk = [{"from": "human", "value": "<image>Who?"}, {"from": "gpt", "value": "Ada."}]
    rows = [{"conversations": talk, "images": ["cat.jpg"]}]
    rows += [{"conversations": [{**talk[0], "value": "<video>Who?"}, talk[1]], "videos": ["list.mp4"]}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "lading.cli", "doctor", str(tmp_path / "rows.jsonl"), "--json"]
    for options in ([], ["--deep"]):
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        counts = {kind["kind"]: kind["count"] for kind in json.loads(done.stdout)["kinds"]}
        assert counts["format_not_allowed"] == 2
    assert not ghostscript.exists()


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "PPM", "JPEG2000", "AVIF"])
def test_usual_pictures_are_opened(tmp_path: Path, form: str) -> None:
    Image.init()
    if form not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {form}")
    path = tmp_path / "picture.bin"
    Image.new("RGB", (40, 30), (200, 100, 50)).save(path, form)
    assert media.measure(MediaPart(kind="image", reference=str(path))) == ImageSize(height=30, width=40)
    assert image.decode(MediaPart(kind="image", reference=path.read_bytes())).size == (40, 30)
    assert form in PICTURES


@pytest.mark.parametrize("form", ["PCX", "TGA", "ICO", "SGI", "XBM", "PDF"])
def test_other_pictures_are_refused(tmp_path: Path, form: str) -> None:
    path = tmp_path / "picture.png"
    Image.new("1" if form == "XBM" else "RGB", (40, 30)).save(path, form)
    assert refusal("image", str(path), media.measure).reason in ("corrupt_media", "format_not_allowed")


def test_a_playlist_opens_no_other_file(tmp_path: Path) -> None:
    draw_clip(tmp_path / "secret.mp4", "red", "circle", frames=6)
    playlists = {
        "hls.mp4": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsecret.mp4\n#EXT-X-ENDLIST\n",
        "hls.m3u8": "#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nsecret.mp4\n#EXT-X-ENDLIST\n",
        "list.mp4": "ffconcat version 1.0\nfile secret.mp4\n",
        "dash.mp4": '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><Period/></MPD>',
    }
    for name, text in playlists.items():
        (tmp_path / name).write_text(text)
        skip = refusal("video", str(tmp_path / name), media.measure)
        assert skip.reason == "format_not_allowed", name
        assert "playlist" in skip.found or "list of files" in skip.found
    with av.open(str(tmp_path / "list.mp4"), format="concat") as opened:
        assert opened.streams.video, "FFmpeg did not follow the list by itself: this test could not fail"
    assert media.measure(MediaPart(kind="video", reference=str(tmp_path / "secret.mp4"))).frames  # type: ignore[union-attr]


def test_a_picture_is_no_clip_and_a_clip_is_no_picture(tmp_path: Path) -> None:
    draw_clip(tmp_path / "clip.mp4", "red", "circle", frames=6)
    draw_picture(tmp_path / "picture.png", "red", "circle", width=40, height=30)
    assert refusal("video", str(tmp_path / "picture.png"), media.measure).reason == "format_not_allowed"
    assert refusal("image", str(tmp_path / "clip.mp4"), media.measure).reason == "format_not_allowed"
    assert refusal("audio", str(tmp_path / "clip.mp4"), media.measure).reason == "format_not_allowed"


def test_a_codec_that_is_not_used_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.avi"
    with av.open(str(path), "w") as container:
        stream = container.add_stream("cinepak", rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "rgb24"
        for _ in range(3):
            container.mux(stream.encode(av.VideoFrame(32, 32, "rgb24")))
        container.mux(stream.encode(None))
    assert "cinepak" not in CODECS
    for look in (media.measure, lambda part: video.decode(part, [0])):
        skip = refusal("video", str(path), look)
        assert (skip.reason, "cinepak" in skip.found) == ("format_not_allowed", True)


@pytest.mark.parametrize("name", ["talk.mp3", "talk.raw", "talk.RAW", "talk.vox", "talk"])
def test_sounds_are_told_by_their_first_bytes(tmp_path: Path, name: str) -> None:
    """soundfile takes a file for one without a header where its name ends in `.raw`."""
    path = tmp_path / name
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(8000)
        file.writeframes(bytes(1600))
    for reference in (str(path), path.read_bytes()):
        part = MediaPart(kind="audio", reference=reference)
        assert (audio.measure(part).samples, len(audio.decode(part, 4000))) == (800, 400)
    path.write_bytes(b"#EXTM3U\nother.wav\n")
    assert refusal("audio", str(path), media.measure).reason == "format_not_allowed"


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"\xff\xfb\x90\x00", "mp3"),
        (bytes(100) + b"\xff\xf3\x40\x00", "mp3"),
        (b"\xff\xf1\x50\x80", None),
        (b"\x00\x00\x00\x18ftypheic", "an HEIC picture"),
        (b"\x00\x00\x00\x18ftypavif", "avif"),
        (b"\x00\x00\x00\x14ftypqt  ", "mp4"),
        (b"G" + bytes(187) + b"G", "mpegts"),
        (b"FORM\x00\x00\x00\x00AIFF", "aiff"),
        (b"P6\n3 2\n255\n", "ppm"),
        (b"P60 is a road", None),
        (b"\xd7\xcd\xc6\x9a\x00\x00", "a Windows drawing (WMF)"),
        (b"\x00\x00\x01\x00\x01\x00", "an icon"),
        (b"\n\n%!PS-Adobe-3.0", "PostScript (EPS)"),
        (b"v=0\r\no=- 0 0 IN IP4 127.0.0.1", "the description of a stream (SDP)"),
        (b"\x1f\x8b\x08\x00", "packed by gzip"),
        (b"\xef\xbb\xbf<?xml version='1.0'?>", "XML (an SVG drawing, say)"),
        (b"", None),
    ],
)
def test_first_bytes(head: bytes, found: str | None) -> None:
    assert content_of(head) == found
