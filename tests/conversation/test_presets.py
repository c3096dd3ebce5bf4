import base64
import json
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from lading import Loader
from lading.conversation import Format, Layout, recognise
from lading.conversation.formats import NAMED
from lading.conversation.presets import DESCRIBE, TRANSCRIBE, cord_v2, cv17, medpix, rdr, token_text, unimm_chat
from lading.errors import CorpusError, SkipSample
from lading.records import Conversation, Row, SampleKey
from lading.vlm.examples import to_example

Read = Callable[..., Conversation]


def row(value: dict[str, Any], index: int = 0) -> Row:
    return Row(key=SampleKey(index=index, source="s", where=f"s train row {index}"), value=value)


def content(read: Read, value: dict[str, Any], index: int = 0, **options: Any) -> list[list[Any]]:
    """Per turn, its text and references."""
    example = to_example(read(row(value, index), **options))
    return [[part[part["type"]] for part in turn["content"]] for turn in example["conversation"]]


@pytest.mark.parametrize(
    ("read", "value", "wanted"),
    [
        (rdr, {"image": "a.png", "text": "A boot."}, [["a.png", DESCRIBE], ["A boot."]]),
        (
            medpix,
            {"image_id": {"bytes": b"png", "path": None}, "question": "Which organ?", "answer": "Liver."},
            [[b"png", "Which organ?"], ["Liver."]],
        ),
        (
            cv17,
            {"audio": {"bytes": None, "path": "a.mp3"}, "transcription": "Merhaba."},
            [["a.mp3", TRANSCRIBE], ["Merhaba."]],
        ),
    ],
)
def test_a_medium_a_question_and_an_answer(read: Read, value: dict[str, Any], wanted: list[list[Any]]) -> None:
    assert content(read, value) == wanted
    assert [turn.role for turn in read(row(value)).messages] == ["user", "assistant"]


def test_the_prompt_can_be_another() -> None:
    assert content(rdr, {"image": "a.png", "text": "x"}, prompt="Was ist das?")[0] == ["a.png", "Was ist das?"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": "2", "a": "1", "c": {"y": 1, "x": 2}}, "<s_c><s_y>1</s_y><s_x>2</s_x></s_c><s_b>2</s_b><s_a>1</s_a>"),
        ([{"nm": "tea"}, {"nm": "pie"}], "<s_nm>tea</s_nm><sep/><s_nm>pie</s_nm>"),
        ({"menu": ["tea", "pie", 3]}, "<s_menu>tea<sep/>pie<sep/>3</s_menu>"),
        ({"text_sequence": "plain words"}, "plain words"),
        ({"empty": {}}, "<s_empty></s_empty>"),
    ],
)
def test_json_becomes_token_text(value: Any, text: str) -> None:
    assert token_text(value) == text
    truth = json.dumps({"gt_parse": value})
    assert content(cord_v2, {"image": "r.png", "ground_truth": truth})[1] == [text]


def test_one_of_several_parses_by_seed_and_number_alone() -> None:
    value = {"image": "r.png", "ground_truth": json.dumps({"gt_parses": [{"a": n} for n in range(5)]})}
    first = [content(cord_v2, value, index=index)[1][0] for index in range(50)]
    backwards = [content(cord_v2, value, index=index)[1][0] for index in reversed(range(50))]
    assert first == backwards[::-1]
    assert set(first) == {f"<s_a>{n}</s_a>" for n in range(5)}
    assert first != [content(cord_v2, value, index=index, seed=1)[1][0] for index in range(50)]


def turns(*values: str) -> str:
    return json.dumps([{"from": ("human", "gpt")[place % 2], "value": text} for place, text in enumerate(values)])


def test_marks_between_words() -> None:
    value = {"image": "a.png", "conversation": turns("Look: <image> Who?", "Ada.", "And <image>here?", "Ada again.")}
    assert content(unimm_chat, value) == [
        ["Look: ", "a.png", " Who?"],
        ["Ada."],
        ["And ", "a.png", "here?"],
        ["Ada again."],
    ]


def test_a_list_of_pictures_is_taken_in_order() -> None:
    value = {"image": ["a.png", "b.png"], "conversation": turns("<image>or<image>?", "The first.")}
    assert content(unimm_chat, value)[0] == ["a.png", "or", "b.png", "?"]


def test_a_picture_written_out_as_text() -> None:
    written = base64.b64encode(b"x" * 5000).decode()
    assert content(unimm_chat, {"image": written, "conversation": turns("<image>", "x")})[0] == [b"x" * 5000]
    address = "data:image/png;base64," + written
    assert content(unimm_chat, {"image": address, "conversation": turns("<image>", "x")})[0] == [address]


CORD = {"image": "r.png"}


@pytest.mark.parametrize(
    ("read", "value", "reason", "said"),
    [
        (rdr, {"image": None, "text": "x"}, "missing_media", "found no image"),
        (rdr, {"image": {"bytes": None, "path": None}, "text": "x"}, "missing_media", "column 'image'"),
        (rdr, {"image": "a.png", "text": 7}, "bad_row", "found int in column 'text'; wanted text"),
        (medpix, {"image_id": "a.png", "question": "x"}, "bad_row", "in column 'answer'"),
        (cv17, {"audio": None, "transcription": "x"}, "missing_media", "found no audio"),
        (cord_v2, {**CORD, "ground_truth": "{oops"}, "malformed_json", "wanted {\"gt_parse\""),
        (cord_v2, {**CORD, "ground_truth": '{"meta": 1}'}, "bad_row", "ground truth with meta; wanted gt_parse"),
        (cord_v2, {**CORD, "ground_truth": '{"gt_parses": []}'}, "bad_row", "at least one parse"),
        (cord_v2, {**CORD, "ground_truth": "[1]"}, "bad_row", "no keys"),
        (unimm_chat, {"image": "a", "conversation": "[oops"}, "malformed_json", "column 'conversation'"),
        (unimm_chat, {"image": "a", "conversation": "[" * 50_000}, "malformed_json", "column 'conversation'"),
        (cord_v2, {**CORD, "ground_truth": "[" * 50_000}, "malformed_json", "column 'ground_truth'"),
        (cord_v2, {**CORD, "ground_truth": "7" * 5000}, "malformed_json", "digits"),
        (cord_v2, {**CORD, "ground_truth": r'{"gt_parse": {"a": "\ud800"}}'}, "bad_row", "half a character"),
        (medpix, {"image_id": "a.png", "question": "\ud800", "answer": "x"}, "bad_row", "half a character"),
        (unimm_chat, {"image": "a", "conversation": "{}"}, "bad_row", "a dict in column 'conversation'"),
        (unimm_chat, {"image": "a", "conversation": turns("Hi", "Ho")}, "media_without_marks", "1 more image"),
        (unimm_chat, {"image": None, "conversation": turns("<image>", "Ho")}, "marks_without_media", "more"),
        (unimm_chat, {"image": ["a"], "conversation": turns("<image><image>", "")}, "marks_without_media", ""),
        (unimm_chat, {"image": "a", "conversation": turns("<image>")}, "no_assistant_turn", "only user turns"),
        (unimm_chat, {"image": "?" * 5000, "conversation": turns("<image>", "o")}, "corrupt_media", "not base64"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(read: Read, value: dict[str, Any], reason: str, said: str) -> None:
    with pytest.raises(SkipSample) as caught:
        read(row(value, index=3))
    assert caught.value.reason == reason
    assert said in str(caught.value)
    assert "s train row 3" in caught.value.where


def test_they_are_formats_by_name_for_any_corpus(tmp_path: Path) -> None:
    (tmp_path / "scans").mkdir()
    Image.new("RGB", (56, 56)).save(tmp_path / "scans" / "one.png")
    rows = [{"image_id": "one.png", "question": "Which organ?", "answer": "The liver."}] * 3
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(own) + "\n" for own in rows))
    options = {"media_dir": tmp_path / "scans", "format": "medpix"}
    loader = Loader(tmp_path / "rows.jsonl", "toy:qwen2_5_vl", pack_size=128, cache=False, **options)
    assert loader.lengths.images.tolist() == [1, 1, 1]
    assert [part.kind for part in loader.samples.conversation(0).media] == ["image"]


@pytest.mark.parametrize("own", NAMED, ids=lambda own: own.name)
def test_no_row_is_taken_for_one_by_its_columns_alone(own: Format) -> None:
    with suppress(CorpusError):
        assert recognise([dict.fromkeys(own.columns, "x")], Layout()).format not in NAMED
    assert own.lacks({}, Layout()) == own.columns
