"""What formats have of their own, in rows as people write them."""

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from PIL import Image

from lading import media
from lading.conversation import Layout, read_conversation, recognise
from lading.errors import SkipSample
from lading.loader import Loader
from lading.records import Conversation, ImageSize, MediaPart, Row, SampleKey, TextPart
from lading.toy.corpus import draw_clip

ANSWER = {"from": "gpt", "value": "Yes."}
REPLY = {"role": "assistant", "content": "Yes."}


def read(value: dict[str, Any], **layout: Any) -> Conversation:
    name = layout.pop("format", None) or recognise([value], Layout(**layout)).format.name
    key = SampleKey(index=0, source="s", where="d.jsonl:4")
    return read_conversation(Row(key=key, value=value), Layout(**layout, format=name))


def first(talk: Conversation) -> list[Any]:
    return [part.text if isinstance(part, TextPart) else (part.kind, part.reference) for part in talk.messages[0].parts]


@pytest.mark.parametrize(
    ("said", "parts"),
    [
        ("<image>\nWho?", [("image", "a.jpg"), "Who?"]),
        ("Who?\n<image>", ["Who?", ("image", "a.jpg")]),
        ("Look:\n<image>\nWho?", ["Look:", ("image", "a.jpg"), "Who?"]),
        ("<image>\n\nWho?", [("image", "a.jpg"), "\nWho?"]),
        ("<image>", [("image", "a.jpg")]),
    ],
)
def test_line_breaks_belong_to_llavas_marks(said: str, parts: list[Any]) -> None:
    row = {"id": 7, "image": "a.jpg", "conversations": [{"from": "human", "value": said}, ANSWER]}
    assert first(read(row)) == parts


def test_llava_video_calls_its_clip_an_image() -> None:
    for mark in ("<image>", "<video>"):
        row = {"video": "a.mp4", "conversations": [{"from": "human", "value": f"{mark}\nWhy?"}, ANSWER]}
        assert first(read(row)) == [("video", "a.mp4"), "Why?"]


@pytest.mark.parametrize("nothing", [[], None])
def test_an_empty_list_hides_no_picture(nothing: Any) -> None:
    talk = [{"from": "human", "value": "<image>\nWho?"}, ANSWER]
    row = {"images": nothing, "image": "a.jpg", "conversations": talk}
    assert first(read(row)) == [("image", "a.jpg"), "Who?"]
    unmarked = {**row, "conversations": [{"from": "human", "value": "Who?"}, ANSWER]}
    with pytest.raises(SkipSample, match="1 more image than <image> marks"):
        read(unmarked)


def test_an_empty_list_makes_no_format() -> None:
    text = {"image": [], "conversations": [{"from": "human", "value": "Who?"}, ANSWER]}
    assert not recognise([text], Layout()).certain


def content(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": list(parts)}, REPLY]}


@pytest.mark.parametrize(
    ("part", "kind", "reference"),
    [
        ({"type": "image_url", "image_url": {"url": "a.jpg", "detail": "low"}}, "image", "m/a.jpg"),
        ({"type": "image_url", "image_url": "a.jpg"}, "image", "m/a.jpg"),
        ({"type": "image_url", "image_url": {"url": "file:///x/a.jpg"}}, "image", "/x/a.jpg"),
        ({"type": "image_url", "image_url": {"url": "data:image/png,AA"}}, "image", "data:image/png,AA"),
        ({"type": "video_url", "video_url": {"url": "a.mp4"}}, "video", "m/a.mp4"),
        ({"type": "audio_url", "audio_url": {"url": "a.wav"}}, "audio", "m/a.wav"),
        ({"type": "input_audio", "input_audio": {"data": "AA", "format": "mp3"}}, "audio", "data:audio/mp3;base64,AA"),
        ({"type": "image", "image": {"bytes": b"png", "path": None}}, "image", b"png"),
        ({"type": "image", "text": None, "image": "a.jpg"}, "image", "m/a.jpg"),
        ({"type": "video", "video": ["1.png", "2.png"]}, "video", ("m/1.png", "m/2.png")),
    ],
)  # fmt: skip
def test_openai_parts(part: dict[str, Any], kind: str, reference: Any) -> None:
    talk = read(content(part, {"type": "text", "text": "Who?"}), media_dir=Path("m"))
    assert first(talk) == [(kind, reference), "Who?"]


def test_trl_puts_all_or_nothing_first() -> None:
    asked = {"prompt": "Who?", "completion": "Ada.", "images": ["a.jpg", "b.jpg"]}
    assert first(read(asked)) == [("image", "a.jpg"), ("image", "b.jpg"), "Who?"]
    assert first(read({**asked, "prompt": "<image>or<image>?"})) == [("image", "a.jpg"), "or", ("image", "b.jpg"), "?"]
    with pytest.raises(SkipSample, match="1 more image than <image> marks"):
        read({**asked, "prompt": "<image>Who?"})


def test_tags_are_for_messages_and_text_has_none() -> None:
    tags = {"role_tag": "who", "content_tag": "says", "user_tag": "Q", "assistant_tag": "A"}
    assert first(read({"prompt": "Who?", "completion": "Ada."}, tags=tags)) == ["Who?"]
    messages = {"prompt": [{"who": "Q", "says": "Who?"}], "completion": [{"who": "A", "says": "Ada."}]}
    assert first(read(messages, tags=tags)) == ["Who?"]


def test_messages_as_columns_and_as_text() -> None:
    columns = {"conversations": {"from": ["human", "gpt"], "value": ["Who?", "Ada."]}}
    assert first(read(columns)) == ["Who?"]
    text = {"conversations": json.dumps([{"from": "human", "value": "Who?"}, ANSWER])}
    assert first(read(text)) == ["Who?"]


@pytest.mark.parametrize(
    ("value", "name", "said"),
    [
        ({"text": "x"}, "llava", "no column of messages among text"),
        ({"text": "x"}, "alpaca", "no column 'instruction' and no column 'output' among text"),
        ({"prompt": 5, "completion": "x"}, "prompt_completion", "a int in column 'prompt'"),
        ({"completion": "x"}, "prompt_completion", "a NoneType in column 'prompt'"),
        ({"texts": [{"user": "x"}]}, "cauldron", "wanted a user and an assistant in every pair"),
        ({"question": "x", "answer": 5}, "question_answer", "wanted text in column 'answer'"),
        ({"conversations": "[oops"}, "sharegpt", "messages as a str"),
        ({"conversations": {"from": ["a"], "value": []}}, "sharegpt", "messages as a dict"),
    ],
)
def test_rows_of_another_form_are_dropped_by_name(value: dict[str, Any], name: str, said: str) -> None:
    with pytest.raises(SkipSample) as caught:
        read(value, format=name)
    assert (caught.value.reason, caught.value.where) == ("bad_row", "d.jsonl:4")
    assert said in str(caught.value)


def data_url(content: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64," + base64.b64encode(content).decode()


def test_a_data_url_is_measured_by_its_header(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 255, (90, 120, 3), dtype=np.uint8)
    Image.fromarray(noise).save(tmp_path / "a.png")
    # Nothing behind the header is left, so whoever decoded pixels would fail.
    header = data_url((tmp_path / "a.png").read_bytes()[:200])
    assert media.measure(MediaPart(kind="image", reference=header)) == ImageSize(height=90, width=120)


def test_data_urls_and_addresses_all_the_way(tmp_path: Path) -> None:
    Image.new("RGB", (56, 56), "red").save(tmp_path / "a.png")
    url = data_url((tmp_path / "a.png").read_bytes())
    urls = [url, url.replace("base64,", "base64,?"), "https://example.org/a.png", "a.png"]
    rows = [content({"type": "image_url", "image_url": {"url": own}}, {"type": "text", "text": "Who?"}) for own in urls]
    (tmp_path / "d.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    loader = Loader(tmp_path / "d.jsonl", "toy:qwen2_5_vl", pack_size=256)
    (batch,) = list(loader)
    assert [document.key.index for document in batch.rows[0]] == [0, 3]
    pixels = batch.tensor("pixel_values")
    assert pixels[: len(pixels) // 2].equal(pixels[len(pixels) // 2 :])
    bad, address = loader.ledger.entries()
    assert (bad["reason"], address["reason"]) == ("corrupt_media", "unsupported_media")
    assert "not base64" in str(bad["detail"])
    assert "nothing is fetched: copy it there first, and give its path" in str(address["detail"])
    assert str(address["where"]).endswith("d.jsonl:3")


def test_sounds_and_clips_written_out(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(8000, dtype=np.float32), 16000)
    draw_clip(tmp_path / "a.mp4", "red", "circle", frames=16)
    sound = {"data": base64.b64encode((tmp_path / "a.wav").read_bytes()).decode(), "format": "wav"}
    clip = {"url": data_url((tmp_path / "a.mp4").read_bytes(), "video/mp4")}
    talk = read(content({"type": "input_audio", "input_audio": sound}, {"type": "video_url", "video_url": clip}))
    heard, seen = (media.measure(part) for part in talk.media)
    assert heard == media.measure(MediaPart(kind="audio", reference=str(tmp_path / "a.wav")))
    assert seen == media.measure(MediaPart(kind="video", reference=str(tmp_path / "a.mp4")))
