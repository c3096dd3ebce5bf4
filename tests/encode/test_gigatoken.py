"""With and without gigatoken: the same ids, the same labels, the same counts, whatever the text is made of."""

import logging
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lading import ConfigError, Loader, toy
from lading.encode import Encoder
from lading.encode.gigatoken import COMPARED_EVERY, COMPARED_FIRST, GigatokenEncoder, is_plain
from lading.encode.processor_facts import load_processor
from lading.records import Conversation, Message, SampleKey, TextPart
from tests.support.shared import real_processor

REAL = ("gemma4", "internvl3", "llava_onevision", "phi4_mm", "qwen2_5_vl", "qwen3_omni", "qwen3_vl", "step3p7")
"""Shared processors whose tokenizers gigatoken loads."""
OTHERWISE = ("kimi_k25", "smolvlm")
"""Shared processors whose tokenizers it does not load: `tokenizers` encodes everything."""

_READ: dict[str, tuple[Encoder, Encoder]] = {}


def both(name: str) -> tuple[Encoder, Encoder]:
    """The encoder of a family's toy, or of a shared processor, as by default and without gigatoken."""
    if name not in _READ:
        kind, _, own = name.partition(" ")
        processor = load_processor(toy.processor(own) if kind == "toy" else real_processor(own))
        _READ[name] = Encoder.of(processor), Encoder.of(processor, tokenizer="exact")
    return _READ[name]


NAMES = [*(f"toy {name}" for name in toy.recipes()), *(f"real {name}" for name in REAL)]

CATEGORIES: dict[str, list[str]] = {}
for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0x20000, 0x20400), *range(0xE0000, 0xE0100)):
    CATEGORIES.setdefault(unicodedata.category(chr(code)), []).append(chr(code))

ENGLISH = ["The cat's ", "WE'LL ", "façade ", "“so” – ", "½²Ⅻ", "ﬁ", "\r\n ", "    ", "\u00a0\u3000\u200b"]
CODE = [
    "x = f(1)\n\t",
    "```py\nprint('hi')\n```",
    "https://a.b/c?d=e&f",
    '{"key": [1.5e-3]}',
    "</s>",
    "<image>",
    "<bos>",
]
SCRIPTS = ["这是图片。", "画像です", "그림이 ", "Где ", "שלום ", "مرحبا ", "नमस्ते ", "ภาษาไทย", "\u0130stanbul"]
MARKS = ["😀", "👩\u200d👧🏽", "❤️", "e\u0301", "a\u0323\u0301", "\u1100\u1161", "\u212b"]
WORDS = [*ENGLISH, *CODE, *SCRIPTS, *MARKS]


def pieces(special: list[str]) -> st.SearchStrategy[str]:
    """Texts out of words of many scripts, of random characters of every category, and of special tokens."""
    anything = st.sampled_from(sorted(CATEGORIES)).flatmap(lambda kind: st.sampled_from(CATEGORIES[kind]))
    piece = st.one_of(st.sampled_from(WORDS), st.text(anything, max_size=6), st.sampled_from(special))
    return st.lists(piece, max_size=12).map("".join)


def special_tokens(encoder: Encoder) -> list[str]:
    backend = encoder.facts.processor.tokenizer.backend_tokenizer
    return sorted(token.content for token in backend.get_added_tokens_decoder().values())


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_ids_and_places_are_the_tokenizers_own(name: str, data: st.DataObject) -> None:
    fast, exact = both(name)
    encode, own = fast.facts.tokeniser.encode_texts, exact.facts.tokeniser.encode_texts
    assert isinstance(encode, GigatokenEncoder)
    text = data.draw(pieces(special_tokens(fast)))
    found = encode._quickly(text)  # not what a comparison sets right
    if found is None:
        return
    (wanted,) = own([text])
    assert found.ids.tolist() == wanted.ids.tolist()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, len(text)))
    assert found.token_span(start, stop) == wanted.token_span(start, stop)


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_labels_and_counts_are_the_same(name: str, data: st.DataObject) -> None:
    fast, exact = both(name)
    texts = st.sampled_from(WORDS).flatmap(lambda word: pieces([""]).map(lambda text: f"{word}{text}."))
    talk = [
        Message(role=role, parts=(TextPart(text=data.draw(texts)),))  # type: ignore[arg-type]
        for _ in range(data.draw(st.integers(1, 2)))
        for role in ("user", "assistant")
    ]
    conversation = Conversation(key=SampleKey(index=0, source="s", where="w"), messages=tuple(talk))
    tokenised = [encoder.tokenise([(conversation, [])])[0] for encoder in (fast, exact)]
    lengths = [encoder.measure([(conversation, [])])[0] for encoder in (fast, exact)]
    if any(isinstance(own, Exception) for own in tokenised):
        assert {str(own) for own in (*tokenised, *lengths)} == {str(tokenised[0])}
        return
    one, other = tokenised
    assert one.ids.tolist() == other.ids.tolist()  # type: ignore[union-attr]
    assert one.labels.tolist() == other.labels.tolist()  # type: ignore[union-attr]
    assert lengths == [one.length, other.length]  # type: ignore[union-attr]


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_gigatoken_does_not_load_is_encoded_by_tokenizers(name: str) -> None:
    fast, _ = both(f"real {name}")
    assert fast.facts.encoded_by == "tokenizers"


@pytest.mark.parametrize("text", ["e\u0301", "नमस्ते", "a\u0301\u0323", "\u1100\u1161", "\u212b", "\ud800", "\U000e0fff"])
def test_texts_on_which_they_may_differ_are_left_to_the_tokenizer(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize("text", ["naïve – “so”", "这是一张图片。", "그림", "😀 ❤️ 👍🏽", "∑ ½ Ⅻ ١٢٣"])
def test_ordinary_texts_are_not(text: str) -> None:
    assert is_plain(text)


class Wrong:
    """gigatoken, but for one text, of which it makes other ids."""

    def __init__(self, encode: Any, text: str) -> None:
        self.encode, self.text = encode, text

    def __call__(self, text: str) -> Any:
        ids = self.encode(text)
        return ids[::-1].copy() if text == self.text else ids


@pytest.mark.parametrize("number", [0, COMPARED_FIRST - 1, COMPARED_EVERY, 3 * COMPARED_EVERY])
def test_a_difference_is_found_and_ends_the_trust(number: int, caplog: pytest.LogCaptureFixture) -> None:
    processor = toy.processor("qwen2_5_vl")
    encode = Encoder.of(processor).facts.tokeniser.encode_texts
    exact = Encoder.of(processor, tokenizer="exact").facts.tokeniser.encode_texts
    assert isinstance(encode, GigatokenEncoder)
    texts = [f"text of number {place}" for place in range(number + 1)]
    encode._encode = Wrong(encode._encode, texts[-1])
    with caplog.at_level(logging.WARNING, "lading"):
        found = [own.ids.tolist() for own in encode(texts)]
    assert found == [own.ids.tolist() for own in exact(texts)]
    assert not encode.trusted
    assert "tokenizer='exact'" in caplog.text
    assert [own.ids.tolist() for own in encode(texts[-1:])] == found[-1:]


def test_first_tokens_are_added_as_the_tokenizer_adds_them() -> None:
    gemma = Encoder.of(real_processor("gemma4"))
    exact = Encoder.of(real_processor("gemma4"), tokenizer="exact")
    texts = ["<bos>red", "green", "blue ❤️"]
    found = gemma.facts.tokeniser.encode_texts(texts)
    assert [own.ids[0] for own in found] == [2, 2, 2]
    assert [own.ids.tolist() for own in found] == [
        own.ids.tolist() for own in exact.facts.tokeniser.encode_texts(texts)
    ]


def test_an_unknown_choice_is_refused(toy_meta: Any) -> None:
    with pytest.raises(ConfigError, match="exact"):
        Loader(toy_meta, "toy:qwen2_5_vl", pack_size=512, tokenizer="fast")


def test_a_loader_without_it_makes_the_same_batches(toy_meta: Any) -> None:
    loaders = [Loader(toy_meta, "toy:qwen2_5_vl", pack_size=512, tokenizer=own) for own in ("auto", "exact")]
    assert [loader.samples.facts.encoded_by.partition(" ")[0] for loader in loaders] == ["gigatoken", "tokenizers"]
    for one, other in zip(*loaders, strict=True):
        assert np.array_equal(one["input_ids"], other["input_ids"])
        assert np.array_equal(one["labels"], other["labels"])
