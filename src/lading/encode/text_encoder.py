"""Text → token ids, and which of the tokens a span of characters became: the tokenizer's own way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]


class EncodedText(Protocol):
    """A text as token ids [T], before its media are put in."""

    @property
    def ids(self) -> NDArray[np.int64]:
        """Token ids [T]."""
        ...

    def token_span(self, start: int, stop: int) -> Span:
        r"""The tokens that begin inside the characters `start … stop`.

        A token that reaches across `start` (the newline of `assistant\n` merged with one that begins the answer) is
        not the assistant's: at inference the prompt's part of it is already there.
        """
        ...


EncodeTexts = Callable[[Sequence[str]], list[EncodedText]]
"""Texts → their token ids, as the processor would make them: the tokenizer's first token is there once, whether the
chat template wrote it or not."""


class TokenizerText:
    """A text that `tokenizers` encoded."""

    def __init__(self, encoding: Any) -> None:
        self._encoding = encoding
        self.ids: NDArray[np.int64] = np.array(encoding.ids, dtype=np.int64)

    def token_span(self, start: int, stop: int) -> Span:
        """See `EncodedText`."""
        first = self._token_at(range(start, stop))
        last = self._token_at(range(stop - 1, start - 1, -1))
        if first is None or last is None:
            return (0, 0)
        if self._begin(first) < start:
            first += 1
        # One character may be several tokens (the bytes of an emoji); all of them belong to it.
        while last + 1 < len(self.ids) and self._begin(last + 1) < stop:
            last += 1
        return (first, last + 1)

    def _token_at(self, characters: range) -> int | None:
        # Nearly always the first character answers; a normaliser may have swallowed some at the edge.
        found = (self._encoding.char_to_token(character) for character in characters)
        return next((token for token in found if token is not None), None)

    def _begin(self, token: int) -> int:
        characters = self._encoding.token_to_chars(token)
        # A token that the tokenizer adds by itself covers no characters, and stands at the end of the text.
        return sys.maxsize if characters is None else int(characters[0])


def tokenizer_encoder(tokenizer: Any) -> EncodeTexts:
    """Encodes texts with the `tokenizers` backend of a transformers tokenizer, in its own threads."""
    backend, first = tokenizer.backend_tokenizer, tokenizer.bos_token

    def encode(texts: Sequence[str]) -> list[EncodedText]:
        # Whoever called the tokenizer last may have left it padding or truncating; it is set anew at every call.
        backend.no_padding()
        backend.no_truncation()
        written = [begins_with(first, text) for text in texts]
        found: dict[bool, Iterator[Any]] = {
            own: iter(backend.encode_batch(_chosen(texts, written, own), add_special_tokens=not own))
            for own in set(written)
        }
        return [TokenizerText(next(found[own])) for own in written]

    return encode


def begins_with(first: str | None, text: str) -> bool:
    """Whether the chat template wrote the tokenizer's first token already."""
    return first is not None and text.startswith(first)


def _chosen(texts: Sequence[str], flags: Sequence[bool], wanted: bool) -> list[str]:
    return [text for text, flag in zip(texts, flags, strict=True) if flag is wanted]
