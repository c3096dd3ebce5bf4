from pathlib import Path
from typing import Any

import pytest

from lading.conversation import Layout, read_conversation
from lading.errors import SkipSample
from lading.records import Conversation, MediaPart, Row, SampleKey, TextPart

GOOD = {"role": "assistant", "content": "ok"}


def read(value: dict[str, Any], **layout: Any) -> Conversation:
    key = SampleKey(index=0, source="s", where="d.jsonl:4")
    return read_conversation(Row(key=key, value=value), Layout(**layout))


def said(conversation: Conversation) -> list[tuple[str, list[Any]]]:
    return [
        (message.role, [part.text if isinstance(part, TextPart) else part.reference for part in message.parts])
        for message in conversation.messages
    ]


def test_from_and_value() -> None:
    talk = read(
        {
            "conversations": [
                {"from": "system", "value": "Be kind."},
                {"from": "human", "value": "Who<image>is<video>this?"},
                {"from": "gpt", "value": "Ada"},
            ],
            "images": ["a.jpg"],
            "videos": ["b.mp4"],
        }
    )
    assert said(talk) == [
        ("system", ["Be kind."]),
        ("user", ["Who", "a.jpg", "is", "b.mp4", "this?"]),
        ("assistant", ["Ada"]),
    ]


def test_role_and_content_and_a_single_image() -> None:
    talk = read(
        {
            "messages": [{"role": "user", "content": "<image>"}, {"role": "assistant", "content": "ok"}],
            "image": "one.png",
        },
        media_dir=Path("/media"),
    )
    assert said(talk)[0] == ("user", ["/media/one.png"])


def test_columns_and_tags_are_the_sources_own() -> None:
    talk = read(
        {
            "dialog": [{"who": "Q", "says": "Hi<audio>"}, {"who": "A", "says": "Hello"}, {"who": "T", "says": "42"}],
            "sounds": ["x.wav"],
        },
        columns={"messages": "dialog", "audios": "sounds"},
        tags={"role_tag": "who", "content_tag": "says", "user_tag": "Q", "assistant_tag": "A", "tool_tag": "T"},
    )
    assert [role for role, _ in said(talk)] == ["user", "assistant", "tool"]
    assert said(talk)[0][1] == ["Hi", "x.wav"]


def test_content_as_parts() -> None:
    talk = read(
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"type": "image", "image": "a.jpg"},
                        {"type": "text", "text": "and"},
                        {"type": "image_url", "image_url": {"url": "b.jpg"}},
                        {"type": "image"},
                    ],
                },
                {"role": "assistant", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            ],
            "images": ["c.jpg"],
        }
    )
    assert said(talk) == [("user", ["a.jpg", "and", "b.jpg", "c.jpg"]), ("assistant", ["one", "two"])]


def test_media_with_extras_bytes_and_frames() -> None:
    talk = read(
        {
            "messages": [
                {"role": "user", "content": "<image><image><video>"},
                {"role": "assistant", "content": "ok"},
            ],
            "images": [{"path": "a.jpg", "note": 1}, {"bytes": b"png", "path": None}],
            "videos": [["f1.png", "f2.png"]],
        },
        media_dir=Path("m"),
    )
    first, second, third = talk.media
    assert first == MediaPart(kind="image", reference="m/a.jpg", options={"note": 1})
    assert second.reference == b"png"
    assert third.reference == ("m/f1.png", "m/f2.png")


def test_instruction_input_and_output() -> None:
    row = {
        "instruction": "Name it.",
        "input": "<image>",
        "output": "Ada",
        "images": ["a.jpg"],
        "history": [["Hi", "Ho"]],
    }
    assert said(read(row)) == [
        ("user", ["Hi"]),
        ("assistant", ["Ho"]),
        ("user", ["Name it.\n", "a.jpg"]),
        ("assistant", ["Ada"]),
    ]


def test_a_system_prompt_in_a_column_of_its_own_goes_first() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "arr"}]
    assert said(read({"messages": messages, "system": "Be a pirate."}))[0] == ("system", ["Be a pirate."])
    own = [{"role": "system", "content": "Be kind."}, *messages]
    assert said(read({"messages": own, "system": "Be a pirate."}))[0] == ("system", ["Be kind."])


@pytest.mark.parametrize("nothing", [None, "", [], {}])
def test_a_column_that_says_nothing_is_none(nothing: Any) -> None:
    assert said(read({"messages": [GOOD], "system": nothing, "tools": nothing})) == [("assistant", ["ok"])]


@pytest.mark.parametrize("tools", ["[]", " [ ]\n", "{}", "null", " "])
def test_no_tools_as_text_are_none(tools: str) -> None:
    assert said(read({"messages": [GOOD], "tools": tools})) == [("assistant", ["ok"])]


def test_messages_come_before_instructions() -> None:
    messages = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "ho"}]
    row = {"messages": None, "conversations": messages, "instruction": "x", "output": "y"}
    assert said(read(row)) == [("user", ["hi"]), ("assistant", ["ho"])]


def test_data_urls_and_addresses_stay_what_they_are() -> None:
    talk = read(
        {
            "messages": [{"role": "user", "content": "<image><image>"}, {"role": "assistant", "content": "ok"}],
            "images": ["data:image/png;base64,iVBORw==", "https://example.org/a.png"],
        },
        media_dir=Path("m"),
    )
    assert [part.reference for part in talk.media] == ["data:image/png;base64,iVBORw==", "https://example.org/a.png"]


def test_beside_typed_media_a_mark_is_a_word() -> None:
    content = [{"type": "image", "image": "a.jpg"}, {"type": "text", "text": "what is <image>?"}]
    talk = read({"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "a tag"}]})
    assert said(talk)[0] == ("user", ["a.jpg", "what is <image>?"])


@pytest.mark.parametrize(
    ("value", "reason", "text"),
    [
        ({"text": "hi"}, "bad_row", "no column of messages among text"),
        ({"messages": "hi"}, "bad_row", "messages as a str"),
        ({"messages": ["hi"]}, "bad_row", "a message as a str"),
        ({"messages": []}, "empty_conversation", "no messages"),
        ({"messages": [{"role": "user", "content": "hi"}]}, "no_assistant_turn", "only user turns"),
        ({"messages": [{"role": "wizard", "content": "hi"}, GOOD]}, "unknown_role", "role 'wizard'"),
        ({"messages": [{"role": "user"}, GOOD]}, "bad_row", "no content among role"),
        ({"messages": [{"role": "user", "content": None}, GOOD]}, "bad_row", "null as content"),
        ({"messages": [{"role": "user", "content": "<image>"}, GOOD]}, "marks_without_media", "more <image> marks"),
        ({"messages": [GOOD], "images": ["a", "b"]}, "media_without_marks", "2 more images than <image> marks"),
        ({"messages": [{"role": "user", "content": [{"type": "hologram"}]}, GOOD]}, "bad_row", "'hologram'"),
        ({"messages": [{"role": "user", "content": "<image>"}, GOOD], "images": [{}]}, "bad_row", "without a path"),
        ({"messages": [{"role": "user", "content": "<image>"}, GOOD], "images": [""]}, "bad_row", "an empty path"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": None}]}, GOOD]}, "bad_row", "NoneType"),
        ({"messages": [{"role": "user", "content": "a\ud800b"}, GOOD]}, "bad_row", "half a character"),
        ({"messages": "[" * 50_000}, "bad_row", "messages as a str"),
        ({"messages": [{"role": "user", "content": [{"type": ["image"]}]}, GOOD]}, "bad_row", "of type \"['image']\""),
        ({"messages": [GOOD], "system": "a\ud800"}, "bad_row", "half a character"),
        ({"messages": [GOOD], "system": ["Be kind."]}, "bad_row", "a system prompt as a list"),
        ({"instruction": "x", "output": "y", "system": {"text": "Be kind."}}, "bad_row", "a system prompt as a dict"),
        ({"instruction": 7, "output": "x"}, "bad_row", "no text"),
        ({"instruction": "x", "output": "y", "history": ["ab"]}, "bad_row", "no list of pairs"),
    ],
)
def test_what_does_not_fit_is_named(value: dict[str, Any], reason: str, text: str) -> None:
    with pytest.raises(SkipSample) as caught:
        read(value)
    assert caught.value.reason == reason
    assert text in str(caught.value)
    assert caught.value.where == "d.jsonl:4"
