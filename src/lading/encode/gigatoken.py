"""Token ids many times as fast as `tokenizers` makes them, by `gigatoken`, where both make the same.

It is believed as far as it was seen to agree: in versions that were tried, for tokenizers that it can load, after it
agreed on probes of many scripts. Texts of kinds on which the two may differ go to `tokenizers`: those with combining
marks, which either may put in another order, and with characters that not every version of Unicode knows. The first
texts, and then one of every `COMPARED_EVERY`, are encoded both ways; where they differ, `tokenizers` does everything
from then on, with a warning. The figures that keep this file are in ADR 0020.
"""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.encode.text_encoder import EncodedText, EncodeTexts, Span, begins_with

logger = logging.getLogger(__name__)

TRIED = ("0.10.",)
"""Versions whose ids were compared with those of `tokenizers`, over every processor of the tests."""
COMPARED_FIRST, COMPARED_EVERY = 32, 256
"""Texts that are encoded both ways: the first ones, and then one of so many."""
PROBES = (
    "Two words, 34 more;\n\n  \tindented (it's!) <end>\r\n",
    "def f(x):\n    return x**2  # ²\n\n\nprint(f(1234567.89))",
    "这是一张图片。请描述它！ 12個の画像です、 그림이 있어요.",
    "Где же ты? Ça va, mon œuvre: “naïve” – São Tomé … Ελλάδα İstanbul",
    "😀👍🏽 ❤️ → ∑ ½ ﬁ Ⅻ ١٢٣ שלום مرحبا",
    " a  b   c\u00a0d\u2003e\u3000f\u200bg \n \n\t\t",
)
"""Texts on which both must agree before any other is believed."""
EMOJI_STYLE = "\ufe0e\ufe0f"
"""Marks that combine with nothing: they say whether the sign before them is a picture."""


class GigatokenText:
    """A text that `gigatoken` encoded: where each token begins follows from how many bytes each of them stands for."""

    __slots__ = ("_begins", "_prefix", "_text", "ids")

    def __init__(self, text: str, ids: NDArray[np.int64], begins: NDArray[np.int64], prefix: int) -> None:
        self.ids = ids
        self._text, self._begins, self._prefix = text, begins, prefix

    def token_span(self, start: int, stop: int) -> Span:
        """See `EncodedText`."""
        if start >= stop:
            return (0, 0)
        text = self._text
        places = (start, stop) if text.isascii() else (len(text[:start].encode()), len(text[:stop].encode()))
        first, last = self._begins.searchsorted(places).tolist()
        return (first + self._prefix, last + self._prefix)


class GigatokenEncoder:
    """Encodes texts by `gigatoken`, and by the `exact` way those of which it is not sure."""

    def __init__(self, tokenizer: Any, exact: EncodeTexts) -> None:
        import gigatoken

        self._encode = gigatoken.Tokenizer(tokenizer).backend.encode
        self._exact = exact
        self._first = tokenizer.bos_token
        self._prefix, self._suffix = _added(tokenizer.backend_tokenizer)
        self._bytes = _bytes_of_ids(tokenizer.backend_tokenizer)
        self.trusted, self._texts = True, 0

    def __call__(self, texts: Sequence[str]) -> list[EncodedText]:
        """The texts as token ids; see `EncodeTexts`."""
        found: list[EncodedText | None] = [self._quickly(text) if self.trusted else None for text in texts]
        known = [place for place, own in enumerate(found) if own is not None]
        compared = [place for number, place in enumerate(known, self._texts) if _is_compared(number)]
        self._texts += len(known)
        missing = [place for place, own in enumerate(found) if own is None]
        exact = self._exact([texts[place] for place in (*compared, *missing)]) if compared or missing else []
        for place, own in zip((*compared, *missing), exact, strict=True):
            quick, found[place] = found[place], own
            if quick is not None and not np.array_equal(quick.ids, own.ids):
                return self._distrusted(texts)
        return [own for own in found if own is not None]

    def _quickly(self, text: str) -> GigatokenText | None:
        """A text that is surely encoded alike; `None` where that is not known."""
        if not (text.isascii() or is_plain(text)):
            return None
        ids = self._encode(text).astype(np.int64)
        ends = self._bytes[ids].cumsum()
        # Where the tokens are not all of the text, byte for byte, something was normalised, and no place is known.
        if len(ids) and ends[-1] != (len(text) if text.isascii() else len(text.encode())):
            return None
        begins = np.concatenate((_ZERO, ends[:-1]))
        if begins_with(self._first, text) or not (self._prefix or self._suffix):
            return GigatokenText(text, ids, begins, 0)
        return GigatokenText(text, np.array([*self._prefix, *ids, *self._suffix]), begins, len(self._prefix))

    def _distrusted(self, texts: Sequence[str]) -> list[EncodedText]:
        self.trusted = False
        logger.warning(
            "gigatoken and tokenizers make different ids of the same text: tokenizers is used from now on. What was"
            " counted before in this run may be wrong: count again with tokenizer='exact'"
        )
        return self._exact(texts)

    def agrees(self) -> bool:
        """Whether it makes of the probes what the exact way makes of them, and places them alike."""
        for text, exact in zip(PROBES, self._exact(PROBES), strict=True):
            found = self._quickly(text)
            if found is None:
                continue
            alike = np.array_equal(found.ids, exact.ids)
            if not alike or any(found.token_span(0, n) != exact.token_span(0, n) for n in range(len(text) + 1)):
                return False
        return self._quickly(PROBES[0]) is not None


_ZERO = np.zeros(1, dtype=np.int64)


def gigatoken_encoder(tokenizer: Any, exact: EncodeTexts) -> GigatokenEncoder | None:
    """The fast encoder of a tokenizer; `None` where there is none that makes the same ids."""
    if not installed_version().startswith(TRIED):
        return None
    try:
        encoder = GigatokenEncoder(tokenizer, exact)
        return encoder if encoder.agrees() else None
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError, NotImplementedError) as error:
        # Its own word for a tokenizer that it does not know, whatever that is: the exact way encodes all texts.
        logger.debug("gigatoken does not load this tokenizer: %s", error)
        return None


def installed_version() -> str:
    """The version of gigatoken; nothing where it is not installed."""
    try:
        return version("gigatoken")
    except PackageNotFoundError:
        return ""


def is_plain(text: str) -> bool:
    """Whether a text is of a kind that is encoded alike: without combining marks, in its composed form.

    >>> is_plain("façade – 图片 😀"), is_plain("e\u0301")
    (True, False)
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return not _unsure()[codes].any() and unicodedata.is_normalized("NFC", text)


@cache
def _unsure() -> NDArray[np.bool_]:
    """By code point: combining marks, halves of characters, and what Python's version of Unicode does not know."""
    unsure = np.ones(0x110000, dtype=np.bool_)
    for code in (*range(0x30000), *range(0xE0000, 0xE0200)):
        unsure[code] = unicodedata.category(chr(code)) in ("Mn", "Mc", "Me", "Cn", "Cs")
    unsure[[ord(mark) for mark in EMOJI_STYLE]] = False
    return unsure


def _is_compared(number: int) -> bool:
    return number < COMPARED_FIRST or number % COMPARED_EVERY == 0


def _added(backend: Any) -> tuple[list[int], list[int]]:
    """The ids that a tokenizer puts before a text, and those that it puts behind."""
    own = backend.encode(PROBES[0], add_special_tokens=False).ids
    whole = backend.encode(PROBES[0], add_special_tokens=True).ids
    places = [place for place in range(len(whole) - len(own) + 1) if whole[place : place + len(own)] == own]
    if not places:
        raise ValueError("a tokenizer that does more than put ids before and behind a text")
    return whole[: places[0]], whole[places[0] + len(own) :]


def _bytes_of_ids(backend: Any) -> NDArray[np.int64]:
    """How many bytes of a text each id stands for."""
    added = {number: token.content for number, token in backend.get_added_tokens_decoder().items()}
    vocabulary = backend.get_vocab(with_added_tokens=True)
    by_bytes = "ByteLevel" in str(backend.pre_tokenizer)
    lengths = np.zeros(max(vocabulary.values()) + 1, dtype=np.int64)
    for token, number in vocabulary.items():
        if number in added:
            lengths[number] = len(added[number].encode())
        elif by_bytes:
            lengths[number] = len(token)  # each byte is written as a character of its own
        elif len(token) == 6 and token.startswith("<0x"):
            lengths[number] = 1
        else:
            lengths[number] = len(token.replace("▁", " ").encode())
    return lengths
