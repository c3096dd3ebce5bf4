"""Token spans against a loop over offsets, on text that is hard to cut."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import toy
from lading.encode.text_encoder import TokenizerText

TEXTS = st.lists(
    st.sampled_from(["the ", "circle", "\n", "\n\n", "é", "🚢", "你好", "<|im_end|>", " ", "x"]),
    min_size=1,
    max_size=20,
)


def encoded(text: str) -> Any:
    backend = toy.processor("qwen2_5_vl").tokenizer.backend_tokenizer
    backend.no_padding()  # as another test may have left it
    backend.no_truncation()
    return backend.encode(text, add_special_tokens=False)


@given(TEXTS, st.data())
def test_a_span_holds_the_tokens_that_begin_in_it(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    encoding = encoded(text)
    if "".join(text[start:stop] for start, stop in dict.fromkeys(encoding.offsets)) != text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    first, last = TokenizerText(encoding).token_span(start, stop)
    expected = [n for n, (begin, _) in enumerate(encoding.offsets) if start <= begin < stop]
    assert list(range(first, last)) == expected


@pytest.mark.parametrize("answer", ["\nHi", "\n\n\nHi", "🚢", "<|im_end|>"])
def test_a_merged_newline_belongs_to_the_prompt(answer: str) -> None:
    prompt = "<|im_start|>assistant\n"
    text = prompt + answer + "<|im_end|>"
    encoding = encoded(text)
    first, last = TokenizerText(encoding).token_span(len(prompt), len(text))
    assert encoding.offsets[first][0] >= len(prompt)
    assert last == len(encoding.ids)
