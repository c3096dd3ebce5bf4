r"""How many tokens a text has, without tokenising it: words repeat, so each is tokenised once and remembered.

A byte-level tokenizer cuts a text at its special tokens, then into words by a pattern, and tokenises each word alone;
most of the time goes into the pattern. For western text the same pattern runs several times faster in Python's own
`re` (see `word_pattern`), and what remains is to look the words up. Where a space always begins a word, a text is even
cut at its spaces alone, and what stands between two of them is looked up. Any other text, any other kind of tokenizer,
and any text where the assistant's part begins inside a word, is left to the tokenizer; and every now and then an answer
is compared with the tokenizer's own.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from lading.encode.word_pattern import ALPHABET, Unknown, cuts_before_spaces, word_pattern

logger = logging.getLogger(__name__)

Span = tuple[int, int]
T = TypeVar("T")

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""The pattern of a byte-level tokenizer that names none."""
_foreign = re.compile(f"[^{re.escape(''.join(sorted(ALPHABET)))}]").search
PROBE = "Two words, 34 more;\n\n  \tindented (it's!) <end>\r\n"
"""A pattern that does not cut this into words without a rest cuts no text that way."""
COMPARED = 64
"""Texts that are compared with the tokenizer's own answer before its words are believed; then one of every batch."""
REMEMBERED, LONG = 250_000, 64
"""Words that are remembered, and the length of those that are not: they do not come again."""
FRAMING = 1000
"""Whole pieces between special tokens that are remembered: those of the template come in every text."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """Tokens of a text: all of them, those that are pads, and those of the assistant that are no pads."""

    tokens: int
    pads: int
    spoken: int


class _Known(dict[str, int]):
    """Tokens of a word, asked of the tokenizer once."""

    def __init__(self, ask: Callable[[str], int]) -> None:
        self._ask = ask

    def __missing__(self, word: str) -> int:
        tokens = self._ask(word)
        if len(word) <= LONG:
            if len(self) >= REMEMBERED:
                self.clear()
            self[word] = tokens
        return tokens


class _Between(_Known):
    """Tokens of what stands between two spaces, with the space in front of it.

    Next to other white space a space is no longer cut off by itself: that is nobody's to remember.
    """

    def __missing__(self, chunk: str) -> int:
        if not chunk or chunk[0].isspace() or chunk[-1].isspace():
            raise _OtherSpace
        return super().__missing__(chunk)


class _OtherSpace(Exception):
    """White space that is more than a space."""


class Words:
    """Counts texts for one tokenizer."""

    def __init__(
        self,
        *,
        pattern: re.Pattern[str],
        ask: Callable[[str], int],
        special: Sequence[str],
        pads: Sequence[str],
        first: str | None,
        added: int,
        spaced: bool = False,
    ) -> None:
        self._find = pattern.findall
        self._known = _Known(ask)
        self._spaced = spaced
        """Whether a space behind something else always begins a word."""
        self._between_spaces = _Between(self._behind_a_space)
        self._framing: dict[str, int] = {}
        longest_first = sorted(special, key=len, reverse=True)
        self.needles = frozenset(special)
        """The special tokens as they are written."""
        self.special = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        self._pads = frozenset(pads)
        self._first, self._added = first, added
        """The tokenizer's own first token, and how many it adds to a text that does not begin with it."""
        self.trusted, self._compared = True, 0

    def to_compare(self, texts: Sequence[T]) -> Sequence[T]:
        """Those of these texts to compare with the tokenizer's own words: all at first, then one at a time."""
        chosen = texts[: max(1, COMPARED - self._compared)]
        self._compared += len(chosen)
        return chosen

    def distrust(self) -> None:
        """Leave everything to the tokenizer from now on, and say so."""
        self.trusted = False
        logger.warning(
            "word counts differ from the tokenizer's own and are not used; what was counted before in this"
            " run may be wrong: lading count --again"
        )

    def tally(self, text: str, spans: Sequence[Span]) -> Tally | None:
        """The tokens of a text, of which `spans` are the assistant's; `None` where only the tokenizer can tell."""
        if not text.isascii() and _foreign(text):
            return None
        written = self._first is not None and text.startswith(self._first)
        tokens, pads, spoken, cursor = 0 if written else self._added, 0, 0, 0
        for found in self.special.finditer(text):
            counted = self._between(text, cursor, found.start(), spans)
            if counted is None:
                return None
            pad = found.group() in self._pads
            tokens += counted[0] + 1
            pads += pad
            spoken += counted[1] + (not pad and _inside(found.start(), spans))
            cursor = found.end()
        counted = self._between(text, cursor, len(text), spans)
        if counted is None:
            return None
        return Tally(tokens=tokens + counted[0], pads=pads, spoken=spoken + counted[1])

    def pieces(self, text: str) -> list[Span]:
        """Where the pieces between special tokens are."""
        found = [match.span() for match in self.special.finditer(text)]
        return list(zip([0, *(stop for _, stop in found)], [*(start for start, _ in found), len(text)], strict=True))

    def piece(self, piece: str, spoken_from: int | None) -> tuple[int, int] | None:
        """Tokens of a piece without special ones, and of its rest from a place on, if there is one.

        `None` where only the tokenizer can tell.
        """
        if not piece.isascii() and _foreign(piece):
            return None
        tokens, words = self._counted(piece, spoken_from or 0)
        if tokens is None or spoken_from is None:
            return None if tokens is None else (tokens, 0)
        before = self._before(words, spoken_from)
        return None if before is None else (tokens, tokens - before)

    def _between(self, text: str, start: int, stop: int, spans: Sequence[Span]) -> tuple[int, int] | None:
        """Tokens between two special ones, and how many of them are the assistant's."""
        if start == stop:
            return 0, 0
        piece = text[start:stop]
        tokens, words = self._framing.get(piece), None
        inside = [(begin - start, end - start) for begin, end in spans if begin < stop and end > start]
        if tokens is None:
            reached = max((place for span in inside for place in span if place < len(piece)), default=0)
            tokens, words = self._counted(piece, reached)
            if tokens is None:
                return None
            if len(piece) <= LONG and len(self._framing) < FRAMING:
                self._framing[piece] = tokens
        spoken = 0
        for begin, end in inside:
            words = words or self._find(piece)
            before = 0 if begin <= 0 else self._before(words, begin)
            until = tokens if end >= len(piece) else self._before(words, end)
            if before is None or until is None:
                return None
            spoken += until - before
        return tokens, spoken

    def _counted(self, piece: str, reached: int) -> tuple[int | None, list[str]]:
        """Tokens of a piece, and its words, at least as far as the place that is to be reached."""
        if self._spaced:
            head, *chunks = piece.split(" ")
            if reached <= len(head) and not head[-1:].isspace():
                words = self._find(head)
                with suppress(_OtherSpace):
                    behind = sum(map(self._between_spaces.__getitem__, chunks))
                    return self._sum(words, head, behind), words
        words = self._find(piece)
        return self._sum(words, piece), words

    def _sum(self, words: list[str], text: str, more: int = 0) -> int | None:
        """Tokens of the words; `None` where they are not the whole text."""
        return sum(map(self._known.__getitem__, words), more) if len("".join(words)) == len(text) else None

    def _behind_a_space(self, chunk: str) -> int:
        tokens = self._sum(self._find(f" {chunk}"), f" {chunk}")
        if tokens is None:
            raise _OtherSpace
        return tokens

    def _before(self, words: Sequence[str], place: int) -> int | None:
        """Tokens of the words in front of a place; `None` where it lies inside a word."""
        tokens = 0
        for word in words:
            if place <= 0:
                break
            tokens += self._known[word]
            place -= len(word)
        return None if place else tokens


def _inside(place: int, spans: Sequence[Span]) -> bool:
    return any(start <= place < stop for start, stop in spans)


def read_words(backend: Any, pads: Sequence[str], first: str | None) -> Words | None:
    """A counter for a `tokenizers.Tokenizer`; `None` for one that does not work by words, or not in a known way."""
    added = [(token.content, token) for token in backend.get_added_tokens_decoder().values()]
    if any(token.lstrip or token.rstrip or token.single_word for _, token in added) or not {*pads} <= {*dict(added)}:
        return None
    if not _harmless(_stated(backend.normalizer)) or not _plain_offsets(_stated(backend.post_processor)):
        return None
    stages = _stages(backend)
    if stages is None or type(backend.model).__name__ != "BPE" or backend.model.dropout:
        return None
    pattern, rest = stages
    try:
        compiled = word_pattern(pattern)
    except Unknown:
        return None
    if "".join(compiled.findall(PROBE)) != PROBE:
        return None
    tokenise = backend.model.tokenize

    def ask(word: str) -> int:
        pieces = [word]
        for stage in rest:
            pieces = [part for piece in pieces for part, _ in stage.pre_tokenize_str(piece)]
        return sum(len(tokenise(piece)) for piece in pieces)

    special = [content for content, _ in added]
    specials = backend.num_special_tokens_to_add(False)
    spaced = cuts_before_spaces(pattern)
    return Words(pattern=compiled, ask=ask, special=special, pads=pads, first=first, added=specials, spaced=spaced)


def _stages(backend: Any) -> tuple[str, list[Any]] | None:
    """The pattern that cuts words, and what happens to each word then."""
    from tokenizers.pre_tokenizers import ByteLevel

    stated = _stated(backend.pre_tokenizer)
    if stated is None:
        return None
    chain = stated["pretokenizers"] if stated["type"] == "Sequence" else [stated]
    first: dict[str, Any] = chain[0] if chain else {"type": None}
    if first["type"] == "ByteLevel" and first["use_regex"] and not first["add_prefix_space"] and len(chain) == 1:
        return GPT2, [ByteLevel(add_prefix_space=False, use_regex=False)]
    plain = first["type"] == "Split" and first["behavior"] == "Isolated" and not first["invert"]
    if not plain or "Regex" not in first["pattern"] or stated["type"] != "Sequence":
        return None
    return first["pattern"]["Regex"], [backend.pre_tokenizer[number] for number in range(1, len(chain))]


def _stated(part: Any) -> Any:
    """A tokenizer's part as it writes itself down."""
    return None if part is None else json.loads(part.__getstate__())


def _harmless(normalizer: Any) -> bool:
    """Whether a normaliser leaves the alphabet as it is."""
    if normalizer is None:
        return True
    if normalizer["type"] == "Sequence":
        return all(map(_harmless, normalizer["normalizers"]))
    return bool(normalizer["type"] == "NFC")


def _plain_offsets(processor: Any) -> bool:
    """Whether a token's characters are all it was made of; some post-processors take spaces off."""
    if processor is None or processor["type"] == "TemplateProcessing":
        return True
    if processor["type"] == "Sequence":
        return all(map(_plain_offsets, processor["processors"]))
    return bool(processor["type"] == "ByteLevel" and not processor["trim_offsets"])
