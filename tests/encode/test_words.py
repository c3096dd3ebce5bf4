"""Counting by words says what the tokenizer says, or nothing."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from lading import toy
from lading.encode import Encoder, Outline
from lading.encode.labels import token_span
from lading.encode.word_pattern import ALPHABET, Unknown, cuts_before_spaces, word_pattern
from lading.encode.words import COMPARED, Words, read_words
from lading.loader import Samples, load_processor, read_processor
from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart
from lading.sources import Corpus
from tests.support.shared import real_processor

BY_WORDS = ("internvl3", "kimi_k25", "llava_onevision", "phi4_mm", "qwen2_5_vl", "qwen3_omni", "qwen3_vl", "smolvlm")
"""Shared processors whose tokenizers work by words."""
OTHERWISE = ("gemma4", "step3p7")

_READ: dict[str, tuple[Any, Words | None]] = {}


def read(name: str) -> tuple[Any, Words | None]:
    if name not in _READ:
        processor = toy.processor("qwen2_5_vl") if name == "toy" else load_processor(real_processor(name))
        tokenizer = processor.tokenizer
        backend = tokenizer.backend_tokenizer
        _READ[name] = backend, read_words(backend, [], tokenizer.bos_token)
    return _READ[name]


def spoken(encoding: Any, start: int, stop: int) -> int:
    first, last = token_span(encoding, start, stop)
    return last - first


WORDLIKE = st.sampled_from(
    ["It's ", "WE'LL", "x1234 ", "  \n", "\t", "façade", "“so” – ", "…", "don’t", "½²", "<|im", "\r\n "]
)
PIECES = st.one_of(st.text(st.sampled_from(sorted(ALPHABET)), max_size=12), WORDLIKE)


@pytest.mark.parametrize("name", ["toy", *BY_WORDS])
@settings(max_examples=150)
@given(pieces=st.lists(PIECES, max_size=8), data=st.data())
def test_tallies_equal_the_tokenizers_own(name: str, pieces: list[str], data: st.DataObject) -> None:
    backend, words = read(name)
    assert words is not None
    special = sorted(token.content for token in backend.get_added_tokens_decoder().values())
    marks = data.draw(st.lists(st.sampled_from(special), max_size=len(pieces)))
    texts = [text for pair in zip(pieces, [*marks, *[""] * len(pieces)], strict=False) for text in pair]
    text = "".join(texts)
    edges = sorted(data.draw(st.lists(st.integers(0, len(text)), min_size=2, max_size=2)))
    encoding = backend.encode(text)
    found = words.tally(text, [(edges[0], edges[1])])
    if found is not None:
        assert found.tokens == len(encoding.ids)
        assert found.spoken == spoken(encoding, edges[0], edges[1])
    whole = words.tally(text, [(0, len(text))])
    assert whole is not None, "a span that cuts no word is never left to the tokenizer"
    assert (whole.tokens, whole.spoken) == (len(encoding.ids), spoken(encoding, 0, len(text)))


@pytest.mark.parametrize("name", ["toy", *BY_WORDS])
def test_every_character_of_the_alphabet_is_of_the_kind_the_tokenizer_takes_it_for(name: str) -> None:
    backend, words = read(name)
    assert words is not None
    for character in sorted(ALPHABET):
        for text in (f"a{character}b", f" {character}1", f"{character}{character} ", f"\n{character}S{character}s"):
            found = words.tally(text, [])
            assert found is not None
            assert found.tokens == len(backend.encode(text).ids), (text, hex(ord(character)))


@pytest.mark.parametrize("name", OTHERWISE)
def test_other_tokenizers_are_left_alone(name: str) -> None:
    assert read(name)[1] is None


def test_other_texts_and_cut_words_are_left_to_the_tokenizer() -> None:
    _, words = read("toy")
    assert words is not None
    assert words.tally("你好", []) is None
    assert words.tally("e\u0301", []) is None
    assert words.tally("several words", [(2, 9)]) is None
    assert words.tally("several words", [(7, 13)]) is not None


@pytest.mark.parametrize("pattern", [r"^a", r"a$", r"\w+", r"[[:alpha:]]", r"\p{Greek}", r"(?<name>a)", r"\1", r"[a"])
def test_patterns_that_might_mean_something_else_are_refused(pattern: str) -> None:
    with pytest.raises(Unknown):
        word_pattern(pattern)


def test_media_are_counted_and_never_trained_on_wherever_they_stand() -> None:
    samples = Samples(corpus=Corpus.of([]), encoder=Encoder.of(toy.processor("qwen2_5_vl")))
    tokeniser = samples.facts.tokeniser
    picture = MediaPart(kind="image", reference=Image.new("RGB", (120, 90)))
    talk = Conversation(
        key=SampleKey(index=0, source="s", where="w"),
        messages=(
            Message(role="user", parts=(picture, TextPart(text="Another one, please."))),
            Message(role="assistant", parts=(TextPart(text="Here: "), picture, TextPart(text=" It's smaller."))),
        ),
    )
    sized = [(talk, samples.encoder.footprints(talk))]
    outline = tokeniser.outline(sized)[0]
    assert isinstance(outline, Outline)
    assert tokeniser.words is not None
    assert tokeniser.lengths(sized) == [outline.length]
    assert tokeniser.words.trusted, "it was not the tokenizer that set it right"
    assert outline.length.images == 2


def test_words_are_believed_when_so_many_were_compared_and_not_before() -> None:
    words = read_processor(toy.processor("qwen2_5_vl")).tokeniser.words
    assert words is not None
    compared = [len(words.to_compare(range(texts))) for texts in (1, 1, 40, 40, 40, 3)]
    assert compared == [1, 1, 40, COMPARED - 42, 1, 1]


def test_a_wrong_count_is_found_out(caplog: pytest.LogCaptureFixture) -> None:
    tokeniser = read_processor(toy.processor("qwen2_5_vl")).tokeniser
    talk = Conversation(
        key=SampleKey(index=0, source="s", where="w"),
        messages=(
            Message(role="user", parts=(TextPart(text="How much?"),)),
            Message(role="assistant", parts=(TextPart(text="That much."),)),
        ),
    )
    assert tokeniser.words is not None
    right = tokeniser.lengths([(talk, [])])
    assert tokeniser.words.trusted
    tokeniser.words._framing.clear()
    tokeniser.words._known["How"] += 1
    with caplog.at_level(logging.WARNING):
        assert tokeniser.lengths([(talk, [])]) == right
    assert not tokeniser.words.trusted
    assert "--again" in caplog.text


@pytest.mark.parametrize("name", ["toy", *BY_WORDS])
@settings(max_examples=150)
@given(chunks=st.lists(st.text(st.sampled_from(sorted(ALPHABET - set(" \t\n\v\f\r"))), min_size=1), min_size=1))
def test_where_spaces_begin_words_a_text_may_be_cut_at_them(name: str, chunks: list[str]) -> None:
    _, words = read(name)
    assert words is not None
    apart = [word for place, chunk in enumerate(chunks) for word in words._find(" " * bool(place) + chunk)]
    assert not words._spaced or apart == words._find(" ".join(chunks))


def test_words_of_the_usual_patterns_begin_at_spaces() -> None:
    assert all(read(name)[1]._spaced for name in ("toy", "qwen2_5_vl", "kimi_k25", "phi4_mm"))  # type: ignore[union-attr]  # they work by words


@pytest.mark.parametrize(
    "pattern",
    [
        r"\p{L}+ ?",
        r"[^\n]+",
        r"\p{L}+(?: \p{L}+)?",
        r"( ?\p{L})+",
        r"\p{L}{2} | ",
        r" *\d",
        r"[^\n]+?x|\s+|.",
        r"[\p{L} ]{2,}?\d|\s+|.",
        r"\p{L}+(?!\s)|\s+|.",
        r"\p{L}+(?!\S)|\s+|.",
        r"\p{N}{1,3}(?=(?:\p{N}{3})*[^\p{N}])|\p{N}| ?\p{L}+|\s+|.",
    ],
)
def test_patterns_with_spaces_inside_their_words_are_told_apart(pattern: str) -> None:
    assert not cuts_before_spaces(pattern)


@given(text=st.text(st.sampled_from("a1.\n\t ")))
def test_white_space_next_to_a_space_is_counted_as_the_pattern_cuts_it(text: str) -> None:
    """Here spaces begin words only behind something else: with a tab before them they are one word."""
    pattern = r"\s+|[^\s]+"
    words = Words(
        pattern=word_pattern(pattern),
        ask=lambda word: 1,
        special=[],
        pads=[],
        first=None,
        added=0,
        spaced=cuts_before_spaces(pattern),
    )
    found = words.tally(text, [])
    assert words._spaced
    assert found is not None
    assert found.tokens == len(word_pattern(pattern).findall(text))
