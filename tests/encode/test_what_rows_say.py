"""Weights, thoughts and tools of a conversation, as tokens and labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from lading.conversation import Layout, read_conversation
from lading.conversation.keys import Reading
from lading.encode import Encoder, TokenisedSample
from lading.errors import ConfigError, SkipSample
from lading.fields import IGNORE_INDEX
from lading.loader import ProcessorFacts, load_processor, read_processor
from lading.records import Row, SampleKey
from tests.families.targets import TARGETS, facts_of
from tests.support.shared import real_processor

ASKED = {"role": "user", "content": "What is two plus two?"}
SAID = {"role": "assistant", "content": "It is four, I think."}
AGAIN = [{"role": "user", "content": "And one more?"}, {"role": "assistant", "content": "Five then."}]


def encoded(facts: ProcessorFacts, value: dict[str, Any], **reading: Any) -> TokenisedSample:
    row = Row(key=SampleKey(index=0, source="s", where="d.jsonl:1"), value=value)
    conversation = read_conversation(row, Layout(reading=Reading(**reading)))
    encoder = Encoder(facts=facts)
    made, counted = (own([encoder.sized(conversation)])[0] for own in (encoder.tokenise, encoder.measure))
    if isinstance(made, SkipSample):
        raise made
    assert made.length == counted
    return made


def trained(facts: ProcessorFacts, made: TokenisedSample) -> str:
    """The text that has labels."""
    tokens = made.ids[made.labels != IGNORE_INDEX]
    return str(facts.processor.tokenizer.decode(tokens.tolist(), skip_special_tokens=False))


@pytest.mark.parametrize("target", TARGETS)
def test_an_answer_of_no_weight_has_no_labels(target: tuple[str, str]) -> None:
    facts = facts_of(target)
    whole = encoded(facts, {"messages": [ASKED, SAID, *AGAIN]})
    masked = encoded(facts, {"messages": [ASKED, {**SAID, "weight": 0}, *AGAIN]})
    last = encoded(facts, {"messages": [ASKED, SAID, *AGAIN]}, train_on="last")
    assert np.array_equal(masked.ids, whole.ids)
    assert np.array_equal(masked.labels, last.labels)
    (start, stop), (begin, end) = whole.spans
    assert (whole.labels[start:stop] != IGNORE_INDEX).all()
    assert (masked.labels[start:stop] == IGNORE_INDEX).all()
    assert np.array_equal(masked.labels[begin:end], whole.labels[begin:end])
    with pytest.raises(SkipSample, match="found no token of an answer that is trained on"):
        encoded(facts, {"messages": [ASKED, {**SAID, "loss": False}]})


def shared(name: str) -> ProcessorFacts:
    return read_processor(load_processor(real_processor(name)))


TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {"type": "object"}}}]
CALL = {"id": "functions.look:0", "type": "function", "function": {"name": "look", "arguments": {"at": "cat"}}}


@pytest.mark.parametrize("name", ["qwen3_vl", "kimi_k25"])
def test_tools_are_written_by_the_template_and_calls_are_trained_on(name: str) -> None:
    facts = shared(name)
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "What is there?"}]},
        {"role": "assistant", "content": [], "tool_calls": [CALL]},
        {"role": "tool", "content": [{"type": "text", "text": "A grey cat."}], "tool_call_id": "functions.look:0"},
        {"role": "assistant", "content": [{"type": "text", "text": "A cat sits there."}]},
    ]
    made = encoded(facts, {"messages": messages, "tools": TOOLS})
    assert made.text == facts.processor.apply_chat_template(messages, tools=TOOLS, tokenize=False)
    said = trained(facts, made)
    assert "look" in said
    assert "cat" in said
    assert "A cat sits there." in said
    assert "A grey cat." not in said
    assert "Look." not in said


def test_tools_that_a_template_does_not_write_are_refused() -> None:
    with pytest.raises(SkipSample, match="found tools, which the chat template does not write"):
        encoded(facts_of(("toy", "internvl")), {"messages": [ASKED, SAID], "tools": TOOLS})


@pytest.mark.parametrize("how", ["train", "given", "drop"])
def test_thoughts_are_trained_on_given_or_left_out(how: str) -> None:
    processor = load_processor(real_processor("kimi_k25"))
    facts = read_processor(processor, template_options={"preserve_thinking": True})
    made = encoded(facts, {"messages": [ASKED, {**SAID, "reasoning_content": "Two and two."}]}, reasoning=how)
    assert ("Two and two." in made.text) == (how != "drop")
    assert ("Two and two." in trained(facts, made)) == (how == "train")
    assert "It is four, I think." in trained(facts, made)
    assert ("<think>" in trained(facts, made)) == (how == "train")


def test_a_template_that_writes_no_thoughts_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"a chat template that reads none; wanted reasoning='drop'"):
        encoded(facts_of(("toy", "qwen2_5_vl")), {"messages": [ASKED, {**SAID, "thinking": "Two and two."}]})


def test_a_thought_that_the_template_itself_writes_is_never_trained_on() -> None:
    facts = facts_of(("toy", "qwen2_5_vl"))
    template = facts.processor.chat_template or facts.processor.tokenizer.chat_template
    assert "<think>" not in template
    opening = facts.family.turns.open("assistant")
    render = facts.tokeniser.render

    def with_thoughts(conversation: Any) -> str:
        return render(conversation).replace(opening, f"{opening}<think>\n\n</think>\n\n")

    thinking = replace(facts, tokeniser=replace(facts.tokeniser, render=with_thoughts))
    made = encoded(thinking, {"messages": [ASKED, SAID]})
    assert "<think>" in made.text
    assert "think>" not in trained(thinking, made)
    own = {"messages": [ASKED, {**SAID, "content": "<think></think>Four."}]}
    assert "think>" in trained(facts, encoded(facts, own)), "an author's own words are"


@pytest.mark.parametrize("how", ["train", "given"])
def test_a_thought_that_the_template_leaves_out_is_said_and_its_empty_place_is_not_trained_on(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    facts = shared("kimi_k25")  # without preserve_thinking
    answer = {**SAID, "content": "It is four.", "reasoning": "Two and two."}
    made = encoded(facts, {"messages": [ASKED, answer]}, reasoning=how)
    assert trained(facts, made).startswith("It is four.")
    assert "the chat template leaves out what was thought" in caplog.text
    again = encoded(facts, {"messages": [ASKED, {**answer, "content": "Four. It is four.", "reasoning": "Four."}]})
    assert trained(facts, again).startswith("Four. It is four.")


def test_options_that_are_not_the_templates_own_are_refused() -> None:
    processor = load_processor("toy:qwen2_5_vl")
    for name in ("messages", "add_generation_prompt", "colour"):
        with pytest.raises(ConfigError, match=f"found template_options {name}"):
            read_processor(processor, template_options={name: True})


@pytest.mark.parametrize("name", ["qwen3_vl", "kimi_k25"])
def test_a_marker_quoted_in_a_call_does_not_end_what_is_trained_on(name: str) -> None:
    facts = shared(name)
    call = {
        "id": "functions.look:0",
        "type": "function",
        "function": {"name": "look", "arguments": {"at": "<|im_end|>", "then": "more"}},
    }
    asked = {"role": "user", "content": [{"type": "text", "text": "Look."}]}
    made = encoded(facts, {"messages": [asked, {"role": "assistant", "content": None, "tool_calls": [call]}, *AGAIN]})
    said = trained(facts, made)
    assert '"then": "more"' in said or '"then":"more"' in said
    assert said.endswith("Five then.<|im_end|>")
    assert "And one more?" not in said
