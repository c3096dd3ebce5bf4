from lading.encode.template import assistant_spans
from lading.family import TurnStyle
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart

STYLE = TurnStyle(opening="<s>{role}\n", closing="</s>")
MARKS = {"image": "[img]"}


def talk(*turns: tuple[str, str]) -> Conversation:
    messages = tuple(Message(role=role, parts=(TextPart(text=text),)) for role, text in turns)  # type: ignore[arg-type]
    return Conversation(key=SampleKey(index=0, source="s", where="w"), messages=messages)


def spoken(text: str, conversation: Conversation) -> list[str]:
    return [text[start:stop] for start, stop in assistant_spans(text, conversation, STYLE, MARKS)]  # type: ignore[arg-type]


def test_a_template_may_add_a_system_turn() -> None:
    text = "<s>system\nassistant</s><s>user\nhi</s><s>assistant\nyo</s>"
    assert spoken(text, talk(("user", "hi"), ("assistant", "yo"))) == ["yo</s>"]


def test_a_template_may_strip_what_is_said() -> None:
    text = "<s>user\nhi</s><s>assistant\nyo</s>"
    assert spoken(text, talk(("user", "  hi "), ("assistant", "\nyo\n"))) == ["yo</s>"]


def test_a_template_may_rewrite_what_is_said() -> None:
    text = "<s>user\nhi</s><s>assistant\n(thinking) yo</s><s>user\nyo!</s><s>assistant\nbye</s>"
    conversation = talk(("user", "hi"), ("assistant", "yo!"), ("user", "yo!"), ("assistant", "bye"))
    assert spoken(text, conversation) == ["(thinking) yo</s>", "bye</s>"]


def test_an_empty_answer_still_teaches_to_stop() -> None:
    assert spoken("<s>user\nhi</s><s>assistant\n</s>", talk(("user", "hi"), ("assistant", ""))) == ["</s>"]


def test_media_are_jumped_over_with_what_frames_them() -> None:
    picture = MediaPart(kind="image", reference="a")
    conversation = Conversation(
        key=SampleKey(index=0, source="s", where="w"),
        messages=(
            Message(role="user", parts=(picture, TextPart(text="what is </s> for?"))),
            Message(role="assistant", parts=(TextPart(text="ends"),)),
        ),
    )
    text = "<s>user\n<v>[img]</v>what is </s> for?</s><s>assistant\nends</s>"
    assert spoken(text, conversation) == ["ends</s>"]
