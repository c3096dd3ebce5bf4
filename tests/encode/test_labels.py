"""Token spans against a loop over offsets, on text that is hard to cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading import toy
from lading.encode.labels import token_span

TEXTS = st.lists(
    st.sampled_from(["the ", "circle", "\n", "\n\n", "é", "🚢", "你好", "<|im_end|>", " ", "x"]),
    min_size=1,
    max_size=20,
)


@given(TEXTS, st.data())
def test_a_span_holds_the_tokens_that_begin_in_it(words: list[str], data: st.DataObject) -> None:
    text = "".join(words)
    encoding = toy.processor("qwen2_5_vl").tokenizer.backend_tokenizer.encode(text, add_special_tokens=False)
    if "".join(text[start:stop] for start, stop in dict.fromkeys(encoding.offsets)) != text:
        return
    start = data.draw(st.integers(0, len(text) - 1))
    stop = data.draw(st.integers(start + 1, len(text)))
    first, last = token_span(encoding, start, stop)
    expected = [n for n, (begin, _) in enumerate(encoding.offsets) if start <= begin < stop]
    assert list(range(first, last)) == expected


@pytest.mark.parametrize("answer", ["\nHi", "\n\n\nHi", "🚢", "<|im_end|>"])
def test_a_merged_newline_belongs_to_the_prompt(answer: str) -> None:
    backend = toy.processor("qwen2_5_vl").tokenizer.backend_tokenizer
    prompt = "<|im_start|>assistant\n"
    text = prompt + answer + "<|im_end|>"
    encoding = backend.encode(text, add_special_tokens=False)
    first, last = token_span(encoding, len(prompt), len(text))
    assert encoding.offsets[first][0] >= len(prompt)
    assert last == len(encoding.ids)
