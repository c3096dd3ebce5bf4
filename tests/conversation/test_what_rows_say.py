"""What a row says about training is done, or named: weights, reasoning, tools, preferences, marks, unread keys."""

from __future__ import annotations

from typing import Any

import pytest

from lading.conversation import Layout, read_conversation
from lading.conversation.keys import HARMLESS, OF_A_MESSAGE, OF_A_PART, OF_A_ROW, Reading, kind_of
from lading.errors import ConfigError, SkipSample
from lading.records import Conversation, MediaPart, Row, SampleKey, TextPart

ASKED = {"role": "user", "content": "Who?"}
SAID = {"role": "assistant", "content": "Ada."}


def read(value: dict[str, Any], name: str | None = None, **reading: Any) -> Conversation:
    key = SampleKey(index=0, source="s", where="d.jsonl:1")
    return read_conversation(Row(key=key, value=value), Layout(format=name, reading=Reading(**reading)))


def weights(conversation: Conversation) -> list[float]:
    return [message.weight for message in conversation.messages if message.role == "assistant"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("weight", 0), ("loss", False), ("loss_scale", 0.0), ("train", False), ("training", False), ("loss_mask", 0)],
)
def test_an_answer_that_is_not_to_be_trained_on(name: str, value: Any) -> None:
    said = read({"messages": [ASKED, {**SAID, name: value}, ASKED, {**SAID, name: 1}]})
    assert weights(said) == [0, 1]
    assert said.unread == ()


def test_the_last_answer_alone() -> None:
    assert weights(read({"messages": [ASKED, SAID, ASKED, SAID]}, train_on="last")) == [0, 1]


@pytest.mark.parametrize("row", [{"loss_weight": 0.1}, {"weight": 0.1}])
def test_the_weight_of_a_row(row: dict[str, float]) -> None:
    asked = {"row_weight": "weight" in row}
    value = {"messages": [ASKED, SAID, ASKED, {**SAID, "weight": 0.5}], **row}
    with pytest.raises(ConfigError, match=r"wanted loss_weights=True, and a loss that uses them"):
        read(value, **asked)
    assert weights(read(value, loss_weights=True, **asked)) == pytest.approx([0.1, 0.05])


def test_a_bare_weight_of_a_row_is_not_guessed_at() -> None:
    value = {"messages": [ASKED, SAID], "weight": 0.1}
    with pytest.raises(ConfigError, match=r"found 'weight', which says how to train .* row_weight=True .*--row-weight"):
        read(value)
    assert read(value, ignore_keys=("weight",)).unread == ("weight",)


@pytest.mark.parametrize("weight", ["heavy", -1, [0, 1], float("inf")])
def test_a_weight_that_is_none_is_named(weight: Any) -> None:
    with pytest.raises(SkipSample, match="wanted one number from 0 up"):
        read({"messages": [ASKED, {**SAID, "weight": weight}]})


def test_two_weights_that_contradict_each_other_are_named() -> None:
    with pytest.raises(SkipSample, match="found weight 1, train False"):
        read({"messages": [ASKED, {**SAID, "weight": 1, "train": False}]})


def test_a_user_is_never_trained_on() -> None:
    assert read({"messages": [{**ASKED, "train": False}, SAID]}).unread == ()
    with pytest.raises(ConfigError, match=r"'messages\[\]\.train', which says how to train"):
        read({"messages": [{**ASKED, "train": True}, SAID]})


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_what_was_thought(name: str) -> None:
    value = {"messages": [ASKED, {**SAID, name: "Hm."}]}
    thoughts = {own: read(value, reasoning=own).messages[1] for own in ("train", "given", "drop")}
    assert [own.thought for own in thoughts.values()] == ["Hm.", "Hm.", ""]
    assert [own.thought_weight for own in thoughts.values()][:2] == [1, 0]


def test_what_was_thought_as_a_part() -> None:
    parts = [{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "Ada."}]
    message = read({"messages": [ASKED, {"role": "assistant", "content": parts}]}).messages[1]
    assert (message.thought, message.parts) == ("Hm.", (TextPart(text="Ada."),))


@pytest.mark.parametrize("as_text", [False, True])
def test_tools_and_calls(as_text: bool) -> None:
    import json

    tools = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    calls = [{"type": "function", "function": {"name": "look", "arguments": {"at": "cat"}}}]
    listed = json.dumps if as_text else lambda value: value
    said = read(
        {
            "messages": [
                ASKED,
                {"role": "assistant", "content": None, "tool_calls": listed(calls)},
                {"role": "tool", "content": "A cat.", "tool_call_id": "7"},
                SAID,
            ],
            "tools": listed(tools),
        }
    )
    assert (list(said.tools), list(said.messages[1].calls), said.messages[1].parts) == (tools, calls, ())
    assert said.messages[2].names == (("tool_call_id", "7"),)
    assert said.unread == ()


def test_tools_that_are_none_are_named() -> None:
    with pytest.raises(SkipSample, match="tools that are no list of objects"):
        read({"messages": [ASKED, SAID], "tools": "look"})


CHOSEN = {
    "messages": {"chosen": [ASKED, SAID], "rejected": [ASKED, {**SAID, "content": "Bob."}]},
    "text": {"prompt": "Who?", "chosen": "Ada.", "rejected": "Bob."},
    "prompt as messages": {"prompt": [ASKED], "chosen": [SAID], "rejected": [{**SAID, "content": "Bob."}]},
    "LLaMA-Factory": {
        "conversations": [{"from": "human", "value": "Who?"}],
        "chosen": {"from": "gpt", "value": "Ada."},
        "rejected": {"from": "gpt", "value": "Bob."},
    },
    "ms-swift": {"messages": [ASKED, SAID], "rejected_response": "Bob."},
}


@pytest.mark.parametrize("form", CHOSEN)
def test_a_preference_is_refused_or_trained_on_as_the_chosen_one(form: str) -> None:
    with pytest.raises(ConfigError, match=r"preference=\"chosen\" \(--preference chosen\)"):
        read(CHOSEN[form])
    said = read(CHOSEN[form], preference="chosen")
    assert [(message.role, message.parts[0]) for message in said.messages] == [
        ("user", TextPart(text="Who?")),
        ("assistant", TextPart(text="Ada.")),
    ]
    assert said.unread == ()


def test_marks_in_an_answer_are_words_where_the_users_pair_off() -> None:
    asked, said = {"role": "user", "content": "<image>How?"}, {"role": "assistant", "content": "Write <image> there."}
    found = read({"messages": [asked, said], "images": ["a.png"]})
    assert [type(part) for part in found.messages[0].parts] == [MediaPart, TextPart]
    assert found.messages[1].parts == (TextPart(text="Write <image> there."),)
    with pytest.raises(SkipSample, match="more <image> marks than images"):
        read({"messages": [asked, asked, said], "images": ["a.png"]})


@pytest.mark.parametrize(
    ("value", "unread"),
    [
        ({"messages": [ASKED, SAID], "mood": "glad", "id": 7}, ("mood", "id")),
        ({"messages": [ASKED, {**SAID, "mood": "glad"}]}, ("messages[].mood",)),
        ({"messages": [ASKED, SAID], "mood": None, "notes": ""}, ()),
        ({"messages": [ASKED, SAID], "conversations": [ASKED]}, ("conversations",)),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": "Hi", "x": 1}]}, SAID]}, ("content[].x",)),
        ({"instruction": "Who?", "input": "", "output": "Ada.", "history": [], "score": 3}, ("score",)),
        ({"messages": [ASKED, SAID], "label": 3}, ("label (a class)",)),
    ],
)
def test_keys_that_nobody_reads_are_listed(value: dict[str, Any], unread: tuple[str, ...]) -> None:
    assert read(value).unread == unread


@pytest.mark.parametrize("name", ["max_pixels", "resized_height", "fps", "nframes", "video_start"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_limit_that_is_not_obeyed_is_refused(name: str, inside: bool) -> None:
    shown: dict[str, Any] = {"type": "video", name: 2}
    beside = {} if inside else {"videos": ["a.mp4"]}
    value = {"messages": [{"role": "user", "content": [{**shown, **({"video": "a.mp4"} if inside else {})}]}, SAID]}
    with pytest.raises(ConfigError, match=rf"\.{name}', which says how to train .* ignore_keys=\['{name}'\]"):
        read({**value, **beside})
    read({**value, **beside}, ignore_keys=(name,))


def test_a_limit_beside_a_path_is_refused() -> None:
    shown = {"path": "a.png", "max_pixels": 9}
    with pytest.raises(ConfigError, match=r"'images\[\]\.max_pixels'"):
        read({"messages": [{"role": "user", "content": "<image>"}, SAID], "images": [shown]})


def test_boxes_are_refused() -> None:
    with pytest.raises(ConfigError, match="found 'objects', which says how to train"):
        read({"messages": [ASKED, SAID], "objects": {"ref": ["cat"], "bbox": [[1, 2, 3, 4]]}})


def test_no_key_is_both_harmless_and_not() -> None:
    assert not HARMLESS & {*OF_A_ROW, *OF_A_MESSAGE, *OF_A_PART}
    assert [kind_of(key) for key in ("id", "messages[].loss", "mood", "fps", "content[].fps")] == [
        *("harmless", "how_to_train", "unread", "unread", "how_to_train")
    ]


@pytest.mark.parametrize(
    "extra",
    [
        {"fps": 29.97},
        {"bbox": [1, 2, 3, 4], "ref": "a page"},
        {"loss": 1.23, "train": True, "reasoning": "why it is here", "thinking": True},
        {"objects": {"ref": [], "bbox": []}},
        {"weight": 1},
        {"label": True},
        {"label": 3},
    ],
)
def test_plain_facts_about_a_row_are_no_reason_to_refuse_it(extra: dict[str, Any]) -> None:
    assert weights(read({"messages": [ASKED, SAID], **extra})) == [1]


def test_answers_that_are_labelled_as_bad_are_not_trained_on_as_good_ones() -> None:
    for name in ("label", "kto_tag"):
        with pytest.raises(ConfigError, match=f"found '{name}'"):
            read({"prompt": "Who?", "completion": "Ada.", name: False})


def test_a_weight_that_is_ignored_on_purpose_is() -> None:
    value = {"messages": [ASKED, {**SAID, "loss": False}], "loss_weight": 0.5}
    assert weights(read(value, ignore_keys=("loss", "loss_weight"))) == [1]


def test_a_weight_of_one_beside_a_user_says_nothing() -> None:
    assert read({"messages": [{**ASKED, "weight": 1}, {**SAID, "weight": 1}]}).unread == ()


def test_a_number_too_large_for_a_weight_is_named() -> None:
    with pytest.raises(SkipSample, match="wanted one number from 0 up"):
        read({"messages": [ASKED, {**SAID, "weight": 10**400}]})


@pytest.mark.parametrize(
    "value",
    [
        {"prompt": "Who?", "chosen": [ASKED, SAID], "rejected": [ASKED, SAID]},
        {"prompt": [ASKED], "chosen": [ASKED, SAID], "rejected": [ASKED, SAID]},
        {"messages": [ASKED, SAID], "chosen": [ASKED, SAID], "rejected": [ASKED, SAID]},
        {"messages": [ASKED, SAID], "chosen": "Ada.", "rejected": "Bob."},
    ],
)
def test_the_question_of_a_preference_comes_once(value: dict[str, Any]) -> None:
    said = read(value, "preference", preference="chosen")
    assert [message.role for message in said.messages] == ["user", "assistant"]


@pytest.mark.parametrize("extra", [{}, {"prompt": None}, {"instruction": "Who?"}])
def test_a_chosen_answer_without_its_question_is_named(extra: dict[str, Any]) -> None:
    with pytest.raises(SkipSample, match="found a chosen answer without its question"):
        read({"chosen": "Ada.", "rejected": "Bob.", **extra}, "preference", preference="chosen")


@pytest.mark.parametrize(
    ("part", "unread"),
    [
        ({"type": "text", "text": "x", "image": "a.png"}, ("content[].image",)),
        ({"type": "image", "image": "a.png", "text": "a cat"}, ("content[].text",)),
        ({"type": "image", "image": "a.png", "path": "b.png"}, ("content[].path",)),
        ({"type": "image_url", "image_url": {"url": "a.png", "detail": "low"}}, ("content[].detail",)),
    ],
)
def test_what_a_part_says_besides_its_own_is_listed(part: dict[str, Any], unread: tuple[str, ...]) -> None:
    assert read({"messages": [{"role": "user", "content": [part]}, SAID]}).unread == unread


def test_a_limit_inside_an_url_is_refused() -> None:
    part = {"type": "image_url", "image_url": {"url": "a.png", "max_pixels": 5}}
    with pytest.raises(ConfigError, match=r"'content\[\]\.max_pixels'"):
        read({"messages": [{"role": "user", "content": [part]}, SAID]})


@pytest.mark.parametrize("name", ["train_on", "reasoning", "preference"])
def test_a_choice_that_is_none_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"found {name} 'som'; wanted one of"):
        Reading(**{name: "som"})  # type: ignore[arg-type]  # a mistake


def test_what_is_read_of_one_layout_is_not_believed_of_another() -> None:
    """Columns that are read are remembered; a layout with other columns remembers its own."""
    from dataclasses import replace

    key, value = SampleKey(index=0, source="s", where="w"), {"messages": [ASKED, SAID], "mood": "glad"}
    one = Layout(format="sharegpt")
    assert read_conversation(Row(key=key, value=value), one).unread == ("mood",)
    other = replace(one, columns={"system": "mood"})
    assert read_conversation(Row(key=key, value=value), other).unread == ()
