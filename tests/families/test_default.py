"""A processor that nobody declared gives the same samples as if somebody had."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
import torch

from lading import families, toy
from lading.encode import Encoder
from lading.errors import ConfigError
from lading.families import default
from lading.loader import read_processor
from tests.families.test_contract import _talks

UNDECLARED = [name for name in toy.recipes() if name not in ("phi4_mm", "qwen3_omni", "kimi_k25", "kimi_vl")]
"""Phi and Qwen3-Omni write no replacement texts; Kimi's empty thought is known by declaration alone."""


def anonymous(name: str) -> Any:
    """A toy of a class that no family knows."""
    processor = copy.deepcopy(toy.processor(name))
    processor.__class__ = type("AnonymousProcessor", (type(processor),), {})
    return processor


@pytest.mark.parametrize("name", UNDECLARED)
def test_what_is_read_off_equals_what_is_declared(name: str, caplog: pytest.LogCaptureFixture) -> None:
    declared = Encoder.of(toy.processor(name))
    found = Encoder.of(anonymous(name))
    assert "AnonymousProcessor is not declared; read off it: answers between" in caplog.text
    own = families.find(name)
    read = found.facts.family
    assert read.turns.open("assistant").strip() == own.turns.open("assistant").strip()
    assert read.turns.closing == own.turns.closing
    # Clips are left out, and three-way positions cannot be seen from outside.
    for key, field in read.fields.items():
        assert own.fields[key].axis in (field.axis, "visual_patch", "image", "image_patch"), key
    talks = [talk for talk in _talks(declared.facts) if all(part.kind == "image" for part in talk.media)]
    # A system prompt inside a user's turn is known by declaration alone.
    talks = [talk for talk in talks if name != "gemma3" or talk.messages[0].role != "system"]
    for talk in talks:
        one, other = declared.encode(talk), found.encode(talk)
        for key in ("input_ids", "labels", *read.fields):
            assert (key in one.tensors) == (key in other.tensors)
            if key in one.tensors:
                assert torch.equal(one.tensors[key], other.tensors[key]), key


def test_it_crosses_process_borders() -> None:
    processor = toy.processor("internvl")
    facts = read_processor(processor, "internvl")
    assert pickle.loads(pickle.dumps(facts)).family.name == "internvl"


def test_a_template_without_markers_is_refused() -> None:
    processor = anonymous("qwen2_5_vl")
    processor.chat_template = "{% for m in messages %}{{ m.content[0].text }} {% endfor %}"
    with pytest.raises(ConfigError, match="markers on both sides"):
        default.derive(processor)


def test_no_template_is_refused() -> None:
    processor = anonymous("qwen2_5_vl")
    processor.chat_template = None
    with pytest.raises(ConfigError, match="without a chat template"):
        read_processor(processor)


def test_a_template_that_says_what_is_generated_is_believed() -> None:
    processor = anonymous("llava_onevision")
    processor.chat_template = processor.chat_template.replace(
        "{{ part.text if part.type == 'text' else marks[part.type] }}",
        "{%- if part.type != 'text' -%}{{ marks[part.type] }}{%- elif message.role == 'assistant' -%}"
        "{% generation %}{{ part.text }}{% endgeneration %}{%- else -%}{{ part.text }}{%- endif -%}",
    )
    assert "generation" in processor.chat_template
    found = Encoder.of(processor)
    assert found.facts.tokeniser.find_spoken is not None
    declared = Encoder.of(toy.processor("llava_onevision"))
    for talk in _talks(declared.facts):
        if all(part.kind == "image" for part in talk.media):
            one, other = declared.encode(talk), found.encode(talk)
            assert torch.equal(one.tensors["input_ids"], other.tensors["input_ids"])
            assert torch.equal(one.tensors["labels"], other.tensors["labels"])
