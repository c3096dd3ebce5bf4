r"""A tokenizer's word pattern, rewritten for Python's own `re`, for text in a small alphabet.

Tokenizers split text into words by patterns over Unicode (`\p{L}+`, `[\p{Lu}&&[^\p{Han}]]`). In an alphabet whose every
character has been of one kind in all versions of Unicode, a class is a list, so it is written out; the rest of the
syntax is the same in both languages. What is not known to be the same is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

_WESTERN = (*range(0xA1, 0x17F), *range(0x2010, 0x2028), *range(0x2030, 0x205F), 0x20AC, 0x2122, *range(0x2190, 0x2300))
ASCII = frozenset(map(chr, range(128)))
ALPHABET = ASCII | {
    chr(code)
    for code in _WESTERN
    # Spaces and formats are left out: patterns tell them apart in more ways than by their category.
    if unicodedata.category(chr(code))[0] in "LNPS" and unicodedata.normalize("NFC", chr(code)) == chr(code)
}
"""ASCII, the letters of western languages, typographic punctuation, arrows and signs. No two of them compose."""
_ESCAPES = {"s": frozenset("\t\n\v\f\r "), "d": frozenset("0123456789")}
_SINGLE = {"n": "\n", "r": "\r", "t": "\t"}
_ABROAD = ("Han", "Hiragana", "Katakana", "Hangul")
"""Scripts without a single character in the alphabet."""
_GROUPS = re.compile(r"\((?:\?(?::|i:|!|=|<!|<=))?")
_PROPERTY = re.compile(r"([pP])\{(\^?)(\w+)\}")
_NOTHING_BUT_WHITE = r"(?!\S)"
_PLAIN = re.compile(r"[|)*+?.]|\{\d+(?:,\d*)?\}|[^\\\[\](){}^$]")

Set = frozenset[str]


class Unknown(ValueError):
    """A piece of a pattern that is not known to mean the same in both languages."""


def word_pattern(pattern: str) -> re.Pattern[str]:
    r"""The same pattern for text in `ALPHABET`; `Unknown` where that is not certain.

    >>> word_pattern(r"\p{Lu}[\p{Ll}&&[^x]]+|\s+(?!\S)").findall("To  be")
    ['To', ' ']
    """
    pieces: list[str] = []
    place = 0
    while place < len(pattern):
        piece, place = _piece(pattern, place)
        pieces.append(piece)
    # ASCII: letters of either case are the same in `(?i:…)` among those alone, and no other is in the alphabet.
    try:
        return re.compile("".join(pieces), re.ASCII)
    except re.error as error:
        raise Unknown(pattern) from error


def cuts_before_spaces(pattern: str) -> bool:
    r"""Whether a text may be cut before a space behind something else: its words are those of both parts.

    So it is where a word is nothing but white space, or has a space in the first place alone, and looks at nothing
    beyond itself. For patterns that `word_pattern` can rewrite.

    >>> cuts_before_spaces(r" ?\p{L}+|\s+"), cuts_before_spaces(r"\p{L}+ ?|\s+"), cuts_before_spaces(r"[\p{L} ]+")
    (True, False, False)
    """
    white = _ESCAPES["s"]
    ways = _alternatives(pattern)
    for items in ways or ():
        first, *later = items or [("", frozenset())]
        if all(members <= white for _, members in items):
            continue
        looks = any(quantifier == _NOTHING_BUT_WHITE for quantifier, _ in items)
        repeated = first[0] in ("*", "+", "{")
        if looks or any(" " in members for _, members in later) or (repeated and " " in first[1]):
            return False
    return ways is not None


def _alternatives(pattern: str) -> list[list[tuple[str, Set]]] | None:
    r"""The ways to make a word: each a list of how often something comes, and what. `None` where words look around.

    Only `(?!\S)` may: behind white space it asks for what comes next, which a cut before a space leaves there.
    """
    ways: list[list[tuple[str, Set]]] = [[]]
    place = depth = 0
    while place < len(pattern):
        if pattern.startswith(_NOTHING_BUT_WHITE, place):
            ways[-1].append((_NOTHING_BUT_WHITE, frozenset()))
            place += len(_NOTHING_BUT_WHITE)
            continue
        start = place
        _, place = _piece(pattern, start)
        text = pattern[start:place]
        if _GROUPS.fullmatch(text):
            if text[1:] in ("?!", "?=", "?<!", "?<="):
                return None
            depth += 1
            # Inside a group nobody knows which comes first: an empty first item makes all of them later ones.
            ways[-1].append(("", frozenset()))
        elif text == ")":
            depth -= 1
            ways[-1].append(("", frozenset()))
        elif text == "|":
            ways += [[]] if not depth else []
        elif text[0] in "*+?{" and ways[-1]:
            # Of two, the first one says how often; the second how eagerly.
            ways[-1][-1] = (ways[-1][-1][0] or text[0], ways[-1][-1][1])
        else:
            members = _escape(text, 1)[0] if text[0] == "\\" else _class(text, 1)[0] if text[0] == "[" else None
            single = ALPHABET if text == "." else frozenset(text)
            ways[-1].append(("", single if members is None else members))
    return ways


def _piece(pattern: str, place: int) -> tuple[str, int]:
    if pattern[place] == "\\":
        members, place = _escape(pattern, place + 1)
        return _written(members), place
    if pattern[place] == "[":
        members, place = _class(pattern, place + 1)
        return _written(members), place
    if group := _GROUPS.match(pattern, place):
        # A plain group would be given back in the word's place.
        return "(?:" if group.group() == "(" else group.group(), group.end()
    if plain := _PLAIN.match(pattern, place):
        return plain.group() if len(plain.group()) > 1 or plain.group() in "|)*+?." else re.escape(
            plain.group()
        ), plain.end()
    raise Unknown(pattern[place:])


def _escape(pattern: str, place: int) -> tuple[Set, int]:
    """What the escape behind a backslash stands for."""
    if found := _PROPERTY.match(pattern, place):
        negated = (found.group(1) == "P") != bool(found.group(2))
        members = _property(found.group(3))
        return ALPHABET - members if negated else members, found.end()
    letter = pattern[place : place + 1]
    if letter.lower() in _ESCAPES:
        members = _ESCAPES[letter.lower()]
        return ALPHABET - members if letter.isupper() else members, place + 1
    if letter in _SINGLE:
        return frozenset(_SINGLE[letter]), place + 1
    if not letter or letter.isalnum():
        raise Unknown(pattern[place - 1 :])
    return frozenset(letter) & ALPHABET, place + 1


def _property(name: str) -> Set:
    if name in _ABROAD:
        return frozenset()
    members = frozenset(character for character in ALPHABET if unicodedata.category(character).startswith(name))
    if len(name) > 2 or name[0] not in "LMNPSZC":
        raise Unknown(name)
    return members


def _class(pattern: str, place: int) -> tuple[Set, int]:
    """The members of a class, and the place behind its bracket. `&&` keeps what both sides have."""
    negated = pattern.startswith("^", place)
    place += negated
    sides: list[Set] = [frozenset()]
    while not pattern.startswith("]", place):
        if place >= len(pattern):
            raise Unknown("[ without ]")
        if pattern.startswith("&&", place):
            sides.append(frozenset())
            place += 2
            continue
        members, place = _member(pattern, place)
        sides[-1] |= members
    both = frozenset.intersection(*sides)
    return ALPHABET - both if negated else both, place + 1


def _member(pattern: str, place: int) -> tuple[Set, int]:
    readers: dict[str, Callable[[str, int], tuple[Set, int]]] = {"\\": _escape, "[": _class}
    if pattern.startswith("[:", place):
        raise Unknown(pattern[place:])
    reader = readers.get(pattern[place])
    members, after = reader(pattern, place + 1) if reader else (frozenset(pattern[place]), place + 1)
    if not (pattern.startswith("-", after) and not pattern.startswith(("]", "[", "&&"), after + 1)):
        return members & ALPHABET, after
    last, end = (
        _escape(pattern, after + 2) if pattern[after + 1] == "\\" else (frozenset(pattern[after + 1]), after + 2)
    )
    if len(members) != 1 or len(last) != 1:
        raise Unknown(pattern[place:])
    codes = range(ord(min(members)), ord(min(last)) + 1)
    return frozenset(chr(code) for code in codes) & ALPHABET, end


def _written(members: Set) -> str:
    if not members:
        return "(?!)"
    return "[" + "".join(f"\\u{ord(character):04x}" for character in sorted(members)) + "]"
