"""Character spans → token spans → labels. Two look-ups a turn; no loop over tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from lading.fields import IGNORE_INDEX


class Encoding(Protocol):
    """The part of `tokenizers.Encoding` that is used: ids, and the way from characters to tokens and back."""

    @property
    def ids(self) -> list[int]:
        """Token ids."""
        ...

    def char_to_token(self, char_pos: int, sequence_index: int = 0) -> int | None:
        """The token that holds a character."""
        ...

    def token_to_chars(self, token_index: int) -> tuple[int, int] | None:
        """The characters a token covers."""
        ...


def token_span(encoding: Encoding, start: int, stop: int) -> tuple[int, int]:
    r"""The tokens that begin inside the characters `start … stop`.

    A token that reaches across `start` (the newline of `assistant\n` merged with one that begins the answer) is not
    the assistant's: at inference the prompt's part of it is already there.
    """
    first = _token_at(encoding, range(start, stop))
    last = _token_at(encoding, range(stop - 1, start - 1, -1))
    if first is None or last is None:
        return (0, 0)
    if _first_character(encoding, first) < start:
        first += 1
    # One character may be several tokens (the bytes of an emoji); all of them belong to it.
    while _first_character(encoding, last + 1) < stop:
        last += 1
    return (first, last + 1)


def labels_from_spans(ids: NDArray[np.int64], spans: Iterable[tuple[int, int]]) -> NDArray[np.int64]:
    """The ids inside the spans, -100 elsewhere.

    >>> labels_from_spans(np.array([5, 6, 7]), [(1, 2)]).tolist()
    [-100, 6, -100]
    """
    labels = np.full_like(ids, IGNORE_INDEX)
    for start, stop in spans:
        labels[start:stop] = ids[start:stop]
    return labels


def _token_at(encoding: Encoding, characters: range) -> int | None:
    # Nearly always the first character answers; a normaliser may have swallowed some at the edge.
    for character in characters:
        token = encoding.char_to_token(character)
        if token is not None:
            return token
    return None


def _first_character(encoding: Encoding, token: int) -> float:
    characters = encoding.token_to_chars(token)
    return math.inf if characters is None else characters[0]
