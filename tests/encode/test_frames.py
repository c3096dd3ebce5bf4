"""Counting by frames says what tokenising says, or nothing."""

from __future__ import annotations

from copy import deepcopy
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading import toy
from lading.encode import Outline
from lading.encode.frames import Frames
from lading.encode.tokeniser import Tokeniser
from lading.errors import SkipSample
from lading.loader import load_processor, read_processor
from lading.records import Conversation, Message, Role, SampleKey, TextPart
from tests.encode.test_words import PIECES
from tests.support.shared import real_processor

TOYS = tuple(f"toy:{name}" for name in toy.recipes())
REAL = ("internvl3", "kimi_k25", "llava_onevision", "phi4_mm", "qwen2_5_vl", "qwen3_omni", "qwen3_vl", "smolvlm")
FRAMED = ("toy:qwen2_5_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_omni", "internvl3")
"""Those whose templates do not look into what is said."""

_READ: dict[str, Tokeniser] = {}


def read(name: str) -> Tokeniser:
    """With the first texts written, so that frames are believed."""
    if name not in _READ:
        folder = name if name.startswith("toy:") else real_processor(name)
        _READ[name] = read_processor(load_processor(folder)).tokeniser
        for _ in range(20):
            _READ[name].lengths([(talk(("user", "Why?"), ("assistant", "So.")), [])])
    return _READ[name]


def talk(*turns: tuple[Role, str]) -> Conversation:
    messages = tuple(Message(role=role, parts=(TextPart(text=text),)) for role, text in turns)
    return Conversation(key=SampleKey(index=0, source="s", where="w"), messages=messages)


NASTY = st.sampled_from(
    [
        "<|im_end|>",
        "<|im_start|>assistant\n",
        "assistant\n",
        "<",
        "\n",
        " ",
        "<|im",
        "_end|>",
        "<image>",
        "</think>",
        "é ß",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, NASTY, st.just("two more words, and some")), min_size=1, max_size=5).map("".join)
TURNS = st.lists(st.tuples(st.sampled_from(get_args(Role)), TEXTS), min_size=1, max_size=4)


@pytest.mark.parametrize("name", [*TOYS, *REAL])
@settings(max_examples=60)
@given(turns=TURNS, data=st.data())
def test_lengths_by_frames_are_the_outlines_own(name: str, turns: list[tuple[Role, str]], data: st.DataObject) -> None:
    tokeniser = read(name)
    own = talk(*turns)
    if data.draw(st.booleans()):  # several texts in a turn
        first = own.messages[0]
        more = (*first.parts, TextPart(text=data.draw(TEXTS)))
        own = Conversation(key=own.key, messages=(Message(role=first.role, parts=more), *own.messages[1:]))
    outline = tokeniser.outline([(own, [])])[0]
    for _ in range(2):  # the first time a shape is learnt, then it is known
        found = None if tokeniser.frames is None else tokeniser.frames.length(own)
        assert found is None or (isinstance(outline, Outline) and found == outline.length)
    (length,) = tokeniser.lengths([(own, [])])
    assert isinstance(length, SkipSample) if isinstance(outline, SkipSample) else length == outline.length
    assert tokeniser.words is None or tokeniser.words.trusted


@pytest.mark.parametrize("name", FRAMED)
def test_plain_talk_is_counted_by_frames(name: str) -> None:
    frames = read(name).frames
    assert isinstance(frames, Frames)
    for turns in (
        (("user", "How far is it?"), ("assistant", "Not far, I think.")),
        (("system", "Be brief."), ("user", "Why?"), ("assistant", "So."), ("user", "And?"), ("assistant", "No.")),
    ):
        assert frames.length(talk(*turns)) is not None
    assert frames.length(talk(("user", "Why?"), ("assistant", "As <|im_end|> says."))) is None


def test_no_more_shapes_are_learnt_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    frames = read_with_room_for(2, monkeypatch)
    talks = [talk(*[("user", "Why?"), ("assistant", "So.")] * turns) for turns in range(1, 6)]
    assert [frames.length(own) is not None for own in talks] == [True, True, False, False, False]


def read_with_room_for(shapes: int, monkeypatch: pytest.MonkeyPatch) -> Frames:
    monkeypatch.setattr("lading.encode.frames.SHAPES", shapes)
    tokeniser = read_processor(toy.processor("qwen2_5_vl")).tokeniser
    for _ in range(16):
        tokeniser.render(talk(("user", "Why?"), ("assistant", "So.")))
    assert tokeniser.frames is not None
    return tokeniser.frames


TURN = "<|im_start|>{{ m.role }}\n%s<|im_end|>\n"
ODD = {
    "half a token before the text": "{% for m in messages %}" + TURN % "<|im{{ m.content[0].text }}" + "{% endfor %}",
    "turns left out": "{% for m in messages if m.role != 'tool' %}" + TURN % "{{ m.content[0].text }}" + "{% endfor %}",
    "a mark": "{% for m in messages %}" + TURN % "<|image_pad|>{{ m.content[0].text }}" + "{% endfor %}",
    "text first": "{% for m in messages %}{{ m.content[0].text }}" + TURN % "{{ m.content[0].text }}" + "{% endfor %}",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("answer", ["_end|>No.", "No.", "_start|>assistant\nNo."])
def test_a_frame_that_could_be_taken_otherwise_is_not_used(name: str, answer: str) -> None:
    processor = deepcopy(toy.processor("qwen2_5_vl"))
    processor.chat_template = ODD[name]
    tokeniser = read_processor(processor, "qwen2_5_vl").tokeniser
    for said in ["and so on", *[answer] * 18]:  # the shape is learnt by one text, and asked for with another
        sized = [(talk(("tool", said), ("user", "Why?"), ("assistant", said)), [])]
        (outline,), (length,) = tokeniser.outline(sized), tokeniser.lengths(sized)
        assert isinstance(length, SkipSample) if isinstance(outline, SkipSample) else length == outline.length
    assert tokeniser.words is not None
    assert tokeniser.words.trusted, "it was not the comparison that set it right"


def test_a_frame_with_a_mark_in_it_is_not_used() -> None:
    """Such a conversation is refused: nothing is there to take the mark's place, which is no pad here."""
    processor = deepcopy(toy.processor("internvl"))
    mark = read_processor(processor).tokeniser.media["video"].mark
    processor.chat_template = "{% for m in messages %}" + TURN % f"{mark}{{{{ m.content[0].text }}}}" + "{% endfor %}"
    tokeniser = read_processor(processor, "internvl").tokeniser
    sized = [(talk(("user", "Why?"), ("assistant", "No.")), [])]
    for _ in range(18):
        tokeniser.render(sized[0][0])
    assert tokeniser.frames is not None
    assert tokeniser.frames.length(sized[0][0]) is None
    assert isinstance(tokeniser.lengths(sized)[0], SkipSample)
