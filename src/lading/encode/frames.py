"""Lengths of conversations in words alone, without writing them out.

What a chat template writes around texts that it does not look into is the same for all conversations of one shape: the
same roles, saying as many texts. It is learnt once for each shape, and counted once; of a conversation, its own words
are counted, each with what stands next to it.

    <|im_start|>user⏎ … <|im_end|>⏎<|im_start|>assistant⏎ … <|im_end|>⏎
    the cells:  ^^^^^^^                        ^^^^^^^^^^^^

A text that could be part of a special token, of a medium's mark or of a turn's borders is not counted this way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from lading.encode.template import Renderer
from lading.encode.turns import assistant_spans
from lading.encode.words import Words
from lading.errors import SkipSample
from lading.family import TurnStyle
from lading.fields import MediaKind
from lading.records import Conversation, Length, Message, Role, TextPart

SHAPES, TEXTS = 1000, 64
"""Shapes that are learnt, and the texts that one may have: what is long hardly comes again, and is slow to learn."""
FILLED = "so"
"""A text to try a frame with."""

Shape = tuple[str | None, ...]
"""The role of every turn, and behind it nothing, as often as it has texts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A piece between two special tokens that has texts in it: its words, and the numbers of the texts."""

    parts: tuple[str | int, ...]
    spoken_from: int | None
    """From which character on the assistant says it; never behind the first text."""

    def filled(self, texts: Sequence[str]) -> str:
        """The piece with these texts."""
        return "".join([texts[part] if isinstance(part, int) else part for part in self.parts])


@dataclass(frozen=True, kw_only=True, slots=True)
class Form:
    """A shape that was learnt: what is counted whatever is said, and the cells."""

    tokens: int
    spoken: int
    cells: tuple[Cell, ...]


class Frames:
    """Counts conversations for one chat template and one tokenizer."""

    def __init__(
        self,
        *,
        render: Renderer,
        words: Words,
        turns: TurnStyle,
        marks: Mapping[MediaKind, str],
    ) -> None:
        self._render, self._words, self._turns, self._marks = render, words, turns, marks
        borders = (turns.closing, *turns.unsaid, *(turns.open(role) for role in get_args(Role)))
        self._needles = frozenset(filter(None, (*words.needles, *marks.values(), *borders)))
        """What nothing that is said may take part in."""
        begins = "".join(sorted({needle[0] for needle in self._needles}))
        self._risky = re.compile(f"[{re.escape(begins)}]").search if begins else re.compile("(?!)").search
        self._begun = tuple({needle[:length] for needle in self._needles for length in range(1, len(needle))})
        self._forms: dict[Shape, Form | None] = {}

    def length(self, conversation: Conversation) -> Length | None:
        """What a conversation costs; `None` where it must be written out."""
        shape: list[str | None] = []
        texts: list[str] = []
        for message in conversation.messages:
            shape.append(message.role)
            for part in message.parts:
                if not isinstance(part, TextPart) or self._risky(part.text):
                    return None
                shape.append(None)
                texts.append(part.text)
        if len(texts) > TEXTS:
            return None
        form = self._form_of(tuple(shape), conversation, texts)
        if form is None or not self._words.trusted:
            return None
        inside = self._inside(form.cells, texts)
        if inside is None or not form.spoken + inside[1]:
            return None
        return Length(tokens=form.tokens + inside[0], label_tokens=form.spoken + inside[1])

    def _inside(self, cells: Iterable[Cell], texts: Sequence[str]) -> tuple[int, int] | None:
        """Tokens of the cells with these texts, and how many of them are the assistant's."""
        tokens = spoken = 0
        for cell in cells:
            found = self._words.piece(cell.filled(texts), cell.spoken_from)
            if found is None:
                return None
            tokens += found[0]
            spoken += found[1]
        return tokens, spoken

    def _form_of(self, shape: Shape, conversation: Conversation, texts: Sequence[str]) -> Form | None:
        """A shape's form, learnt by the first conversation that has it; `None` where it has none, or not yet."""
        if shape not in self._forms:
            if len(self._forms) >= SHAPES or not self._render.settled:
                return None
            self._forms[shape] = None  # whatever happens now, it is not tried again
            self._forms[shape] = self._learnt(conversation, texts)
        return self._forms[shape]

    def _learnt(self, conversation: Conversation, texts: Sequence[str]) -> Form | None:
        from lading.encode.opaque import opaque

        frame = self._render.frame(_saying(conversation, map(opaque, range(len(texts)))))
        if frame is None:
            return None
        whole = Cell(parts=frame, spoken_from=None)
        try:
            right = whole.filled(texts) == self._render(conversation)
            return self._form(whole, conversation, len(texts)) if right else None
        except SkipSample:
            return None

    def _form(self, whole: Cell, conversation: Conversation, number: int) -> Form | None:
        """The form of a frame; `None` where something about it would depend on what is said."""
        fillings = [FILLED] * number
        talk, text = _saying(conversation, fillings), whole.filled(fillings)
        marked = any(mark in text for mark in self._marks.values())
        if marked or self._risky(FILLED) or self._may_grow(whole) or not self._walkable(text, conversation):
            return None
        spans = assistant_spans(text, talk, self._turns, self._marks)
        tally = self._words.tally(text, spans)
        cells = self._cells(whole, spans)
        inside = None if cells is None else self._inside(cells, fillings)
        if tally is None or cells is None or inside is None or tally.pads:
            return None
        return Form(tokens=tally.tokens - inside[0], spoken=tally.spoken - inside[1], cells=tuple(cells))

    def _may_grow(self, whole: Cell) -> bool:
        """Whether a text could complete what stands before it to something else: a special token, an opening."""
        before = {part for part, text in zip(("", *whole.parts), whole.parts, strict=False) if isinstance(text, int)}
        # With nothing in front, or another text, nobody knows.
        return any(not isinstance(part, str) or not part or part.endswith(self._begun) for part in before)

    def _walkable(self, text: str, conversation: Conversation) -> bool:
        """Whether every turn is written with its opening, in order: then the frame alone tells the turns apart."""
        roles = [message.role for message in conversation.messages]
        cursor = 0
        for role in roles:
            found = text.find(self._turns.open(role), cursor)
            if found < 0:
                return False
            closing = text.find(self._turns.closing, found)
            cursor = len(text) if closing < 0 else closing
        return not (self._turns.system_in_first_turn and "system" in roles)

    def _cells(self, whole: Cell, spans: Sequence[tuple[int, int]]) -> list[Cell] | None:
        """The cells of a frame whose texts are all `FILLED`, in which the assistant's spans are these."""
        text, starts, cursor = "", [], 0
        for part in whole.parts:
            starts.append(len(text))
            text += FILLED if isinstance(part, int) else part
        cells: list[Cell] = []
        for start, stop in self._words.pieces(text):
            parts: list[str | int] = []
            first: int | None = None
            for part, begin in zip(whole.parts, starts, strict=True):
                if isinstance(part, int) and start <= begin < stop:
                    parts += [text[max(cursor, start) : begin], part]
                    cursor = begin + len(FILLED)
                    first = begin if first is None else first
            if first is None:
                continue
            parts.append(text[cursor:stop])
            inside = [(begin, end) for begin, end in spans if begin < stop and end > start]
            if len(inside) > 1 or any(begin > first or end < stop for begin, end in inside):
                return None
            spoken_from = max(0, inside[0][0] - start) if inside else None
            cells.append(Cell(parts=tuple(part for part in parts if part != ""), spoken_from=spoken_from))
        return cells


def _saying(conversation: Conversation, texts: Iterable[str]) -> Conversation:
    """The same turns, saying other texts."""
    waiting = iter(texts)
    messages: list[Message] = [
        replace(message, parts=tuple(TextPart(text=next(waiting)) for _ in message.parts))
        for message in conversation.messages
    ]
    return replace(conversation, messages=tuple(messages))
