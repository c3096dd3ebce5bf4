"""What the checks say of single things, and, as important, what they do not say."""

from __future__ import annotations

import copy
import io
from pathlib import Path
from typing import Any

import av
import pytest
from PIL import Image

from lading import toy
from lading.conversation import Layout
from lading.doctor import KINDS, examine
from lading.doctor.checks import WELL_KNOWN, Markers, words
from lading.doctor.media import examine_medium
from lading.doctor.reading import Read
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart
from lading.toy.corpus import draw_clip
from tests.doctor.planted import line, noise, picture_bytes, talk, turn, write_clean_corpus, write_sound
from tests.support.shared import ROOT

KEY = SampleKey(index=0, source="s", where="d.jsonl:1")


def said(text: str) -> set[str]:
    messages = (Message(role="user", parts=(TextPart(text=text),)), Message(role="assistant", parts=()))
    seen = Read(value={}, layout=Layout(), conversation=Conversation(key=KEY, messages=messages))
    return {problem.kind for problem in words(seen, Markers(WELL_KNOWN))}


@pytest.mark.parametrize(
    "text",
    [
        "NÃO É ASSIM; ÂNGULO, PÂTÉ, À Â Ã â ð Ñ Ð",
        "Le «blé», l’été… et “ça” – où? déjà-vu: 5 € à ±3 °C ½ ©",
        "¿Año nuevo? ¡Señor Núñez! Ñandú º ª",
        "Привет, мир! Ёлка. Ђуро Ђаковић",
        "你好，世界。😀👍🏽 日本語 한국어 العربية עברית ไทย",
        "a < b and c > d; List<Image> images; vector<int>; <b>bold</b> <img src='a.png'> [link](image.png) ![image](x)",
        "tabs\tand\r\nnew lines",
        "see [1], [INSTANCE], <user>, |assistant|",
    ],
)
def test_ordinary_text_is_let_alone(text: str) -> None:
    assert said(text) == set()


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("l\u2019été".encode().decode("cp1252"), "garbled_text"),
        ("naïve".encode().decode("latin-1"), "garbled_text"),
        ("😀".encode().decode("cp1252"), "garbled_text"),
        ("Привет".encode().decode("latin-1"), "garbled_text"),
        ("caf\ufffd", "garbled_text"),
        ("bell\x07", "control_characters"),
        ("<start_of_turn>model", "template_marker"),
        ("[INST] do [/INST]", "template_marker"),
        ("<|image_1|> is", "foreign_mark"),
        ("<Image> is", "foreign_mark"),
        ("<image 2> is", "foreign_mark"),
        ("<img>a/b.png</img> is", "foreign_mark"),
        ("<ImageHere>", "foreign_mark"),
        ("[IMG] is", "foreign_mark"),
    ],
)
def test_odd_text_is_named(text: str, kind: str) -> None:
    assert said(text) == {kind}


def kinds(path: Path, kind: Any = "image", **options: Any) -> list[str]:
    return [problem.kind for problem in examine_medium(MediaPart(kind=kind, reference=str(path)), **options).problems]


@pytest.mark.parametrize("kind", ["jpeg", "png", "webp", "bmp", "gif", "tiff", "ppm"])
def test_whole_pictures_are_whole_and_cut_ones_are_not(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"picture.{kind}"
    content = picture_bytes(kind)
    path.write_bytes(content)
    assert kinds(path) == kinds(path, deep=True) == []
    path.write_bytes(content[: len(content) // 2])
    assert kinds(path, deep=True)
    if kind not in ("tiff", "ppm"):
        # The end of those is not told by their edges: only decoding tells.
        assert kinds(path) == ["truncated_picture"]


def test_clips_without_an_end(tmp_path: Path) -> None:
    """With what they are told at the end (as usual), they cannot be opened at all."""
    draw_clip(tmp_path / "whole.mp4", "red", "circle", frames=20)
    content = (tmp_path / "whole.mp4").read_bytes()
    assert kinds(tmp_path / "whole.mp4", "video") == []
    (tmp_path / "cut.mp4").write_bytes(content[: len(content) // 2])
    assert kinds(tmp_path / "cut.mp4", "video") == ["truncated_clip"]


def test_a_broken_head_with_a_whole_body_is_no_cut(tmp_path: Path) -> None:
    content = picture_bytes("png")
    (tmp_path / "odd.png").write_bytes(content[:12] + b"XXXX" + content[16:])
    assert kinds(tmp_path / "odd.png") == ["corrupt_picture"]


@pytest.mark.parametrize("options", [{"progressive": True}, {"exif": b"Exif\0\0" + b"\xff\xd9" * 9}, {"quality": 5}])
def test_jpegs_of_all_sorts_are_whole(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "picture.jpg"
    content = picture_bytes("jpeg", **options)
    for tail in (b"", b"\0" * 500, b"\n", b"appended by a phone" * 100):
        path.write_bytes(content + tail)
        assert kinds(path) == [], tail[:9]
    path.write_bytes(content[:-300])
    assert kinds(path) == ["truncated_picture"]


def test_a_thumbnail_does_not_stand_for_the_end(tmp_path: Path) -> None:
    small = io.BytesIO()
    noise(3, 16, 16).save(small, "jpeg")
    content = picture_bytes("jpeg")
    # An APP1 segment with a whole JPEG inside.
    segment = b"Exif\0\0" + small.getvalue()
    with_thumbnail = content[:2] + b"\xff\xe1" + (len(segment) + 2).to_bytes(2) + segment + content[2:]
    path = tmp_path / "picture.jpg"
    path.write_bytes(with_thumbnail)
    assert kinds(path) == []
    path.write_bytes(with_thumbnail[:-300])
    assert kinds(path) == ["truncated_picture"]


def test_media_in_bytes_are_looked_at_too() -> None:
    def look(content: bytes) -> list[str]:
        return [own.kind for own in examine_medium(MediaPart(kind="image", reference=content)).problems]

    content = picture_bytes("png")
    assert look(content) == []
    assert look(content[:-500]) == ["truncated_picture"]
    assert look(b"") == ["empty_media"]
    assert look(b"version https://git-lfs.github.com/spec/v1") == ["corrupt_picture"]


def test_a_list_of_frames_is_looked_at_frame_by_frame(tmp_path: Path) -> None:
    frames = [tmp_path / f"{number}.png" for number in range(4)]
    for number, path in enumerate(frames):
        noise(number).save(path)
    part = MediaPart(kind="video", reference=tuple(map(str, frames)))
    assert examine_medium(part).problems == ()
    frames[2].write_bytes(frames[2].read_bytes()[:-500])
    assert [own.kind for own in examine_medium(part).problems] == ["truncated_picture"]
    noise(2, 30, 30).save(frames[2])
    assert [own.kind for own in examine_medium(part).problems] == ["corrupt_clip"]


def test_odd_places(tmp_path: Path) -> None:
    assert kinds(tmp_path) == ["corrupt_picture"]
    assert kinds(tmp_path / ("x" * 5000)) == ["missing_media"]
    write_sound(tmp_path / "sound.png", 1)
    assert kinds(tmp_path / "sound.png", "audio") == ["misnamed_media"]
    assert kinds(tmp_path / "sound.png") == ["format_not_allowed"]


def test_upright_by_exif_is_as_it_is_shown(tmp_path: Path) -> None:
    turned = Image.Exif()
    turned[0x0112] = 6
    noise(1, 600, 10).save(tmp_path / "turned.jpg", exif=turned)
    (problem,) = examine_medium(MediaPart(kind="image", reference=str(tmp_path / "turned.jpg"))).problems
    assert problem.detail.endswith("of 10×600 pixels")


def test_nothing_that_would_be_learnt(tmp_path: Path) -> None:
    """A template that says which words are learnt, and an answer in which it says of none that they are."""
    processor = copy.deepcopy(toy.processor("llava_onevision"))
    processor.__class__ = type("AnonymousProcessor", (type(processor),), {})
    processor.chat_template = processor.chat_template.replace(
        "{{ part.text if part.type == 'text' else marks[part.type] }}",
        "{%- if part.type != 'text' -%}{{ marks[part.type] }}{%- elif message.role == 'assistant' and "
        "'secret' not in part.text -%}"
        "{% generation %}{{ part.text }}{% endgeneration %}{%- else -%}{{ part.text }}{%- endif -%}",
    )
    data = tmp_path / "data.jsonl"
    data.write_bytes(line(talk("What?")) + b"\n" + line(talk("What else?", "A secret.")) + b"\n")
    findings = examine(data, processor)
    assert [(own.kind, own.where) for own in findings.findings] == [("no_label_tokens", f"{data}:2")]


def test_what_a_template_refuses(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    row = {"messages": [turn("user", "Hm?"), turn("system", "Be kind."), turn("assistant", "Yes.")]}
    data.write_bytes(line(row) + b"\n")
    assert examine(data, "toy:gemma3").counts == {"system_in_middle": 1, "template_refused": 1}
    assert examine(data, "toy:qwen2_5_vl").counts == {"system_in_middle": 1}


def test_markers_are_the_processors_own(tmp_path: Path) -> None:
    data = tmp_path / "data.jsonl"
    data.write_bytes(line(talk("Say <start_of_turn> to me?")) + b"\n" + line(talk("Say <|im_end|> to me?")) + b"\n")
    assert [own.where[-1] for own in examine(data).of_kind("template_marker")] == ["1", "2"]
    assert [own.where[-1] for own in examine(data, "toy:qwen2_5_vl").of_kind("template_marker")] == ["2"]
    assert [own.where[-1] for own in examine(data, "toy:gemma3").of_kind("template_marker")] == ["1"]


def test_a_medium_that_the_family_does_not_take(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path, samples=20)
    assert examine(meta, "toy:qwen2_5_vl").counts == {"unsupported_media": 2}


def test_parquet_rows(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [
        talk(f"<image>{place}?", images=[{"bytes": picture_bytes("png", place), "path": None}]) for place in range(4)
    ]
    rows[2]["images"][0]["bytes"] = rows[2]["images"][0]["bytes"][:-500]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "data.parquet")
    findings = examine(tmp_path / "data.parquet")
    assert [(own.kind, own.where) for own in findings.findings] == [
        ("truncated_picture", f"{tmp_path / 'data.parquet'} row 2")
    ]


def test_a_row_group_that_cannot_be_read(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "data.parquet"
    parquet.write_table(pyarrow.Table.from_pylist([talk(f"{place}?") for place in range(4)]), path, row_group_size=2)
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(bytes(content))
    assert examine(path).counts == {"unreadable_row": 2}


def test_a_clip_without_frames(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "none.avi"), "w") as container:
        stream = container.add_stream("mpeg4", rate=8)
        stream.width, stream.height, stream.pix_fmt = 128, 96, "yuv420p"
        container.start_encoding()
    assert kinds(tmp_path / "none.avi", "video") == ["empty_clip"]


def test_every_kind_is_explained_and_the_page_says_the_same() -> None:
    page = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
    for name, kind in KINDS.items():
        assert kind.name == name
        assert kind.training.endswith(".")
        assert f"| `{name}` | {kind.severity} | {kind.training} |" in page
