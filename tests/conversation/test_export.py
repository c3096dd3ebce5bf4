from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.errors import SkipSample
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart
from lading.vlm.examples import from_example, to_example

KEY = SampleKey(index=2, source="s", where="d.jsonl:3")
ANSWER = {"role": "assistant", "content": "ok"}

parts = st.builds(TextPart, text=st.text() | st.just("an <image> in words")) | st.builds(
    MediaPart,
    kind=st.sampled_from(["image", "video", "audio"]),
    reference=st.text(min_size=1) | st.binary(min_size=1) | st.tuples(st.just("a.png"), st.just("b.png")),
    options=st.just({}) | st.just({"fps": 2.0}),
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    parts=st.lists(parts, max_size=4).map(tuple),
)


@given(st.lists(messages, max_size=4))
def test_there_and_back_is_the_same(talk: list[Message]) -> None:
    closing = Message(role="assistant", parts=(TextPart(text="bye"),))
    conversation = Conversation(key=KEY, messages=(*talk, closing))
    assert from_example(to_example(conversation), KEY) == conversation


def test_media_beside_the_conversation_fill_the_places() -> None:
    asked = {"role": "user", "content": [{"type": "image"}, {"type": "audio"}, {"type": "image", "image": "own.png"}]}
    example = {"conversation": [asked, ANSWER], "images": [{"path": "a.png", "note": 1}], "audio": b"wav"}
    first, second, third = from_example(example, KEY).media
    assert (first.reference, first.options) == ("a.png", {"note": 1})
    assert (second.reference, third.reference) == (b"wav", "own.png")


@pytest.mark.parametrize("beside", [{"image": "a.png"}, {"images": ["a.png"]}, {"images": [], "image": "a.png"}])
def test_a_medium_that_no_part_shows_is_refused(beside: dict[str, Any]) -> None:
    asked = {"role": "user", "content": [{"type": "audio", "audio": "a.wav"}, {"type": "text", "text": "Who?"}]}
    with pytest.raises(SkipSample, match=r'1 more image than .* wanted a part \{"type": "image"\}') as caught:
        from_example({"conversation": [asked, ANSWER], **beside}, KEY)
    assert caught.value.reason == "media_without_marks"


@pytest.mark.parametrize(
    "beside",
    [
        {"audio": ([0.0], 16000)},
        {"images": []},
        {"image": []},
        {"image": ""},
        {"image": {"bytes": None, "path": None}},
        {"video": None},
    ],
)
def test_a_decoded_copy_and_empty_columns_are_no_further_media(beside: dict[str, Any]) -> None:
    asked = {"role": "user", "content": [{"type": "audio", "audio": "a.wav"}]}
    assert len(from_example({"conversation": [asked, ANSWER], **beside}, KEY).media) == 1


def test_an_empty_column_takes_nothing_from_text_alone() -> None:
    asked = {"role": "user", "content": "Who?"}
    silent = {"array": None, "path": None, "sampling_rate": None}
    assert from_example({"conversation": [asked, ANSWER], "audio": silent, "image": ""}, KEY).media == ()


@pytest.mark.parametrize(
    ("example", "reason", "said"),
    [
        ({}, "bad_row", "found an example with no keys; wanted a list of turns under 'conversation'"),
        ({"conversation": "hi"}, "bad_row", "wanted a list of turns"),
        ({"conversation": []}, "empty_conversation", "no messages"),
        ({"conversation": ["hi"]}, "bad_row", "a turn as a str"),
        ({"conversation": [{"role": "user", "content": 7}]}, "bad_row", "content as a int"),
        ({"conversation": [{"role": "wizard", "content": "hi"}]}, "unknown_role", "role 'wizard'"),
        ({"conversation": [{"role": "user", "content": "hi"}]}, "no_assistant_turn", "only user turns"),
        (
            {"conversation": [{"role": "user", "content": [{"type": "image"}]}, ANSWER]},
            "marks_without_media",
            "a part of type 'image' without its image",
        ),
    ],
)
def test_what_is_no_example_is_named(example: dict[str, Any], reason: str, said: str) -> None:
    with pytest.raises(SkipSample) as caught:
        from_example(example, KEY)
    assert caught.value.reason == reason
    assert said in str(caught.value)
    assert caught.value.where == KEY.where
