"""A list of messages → `Conversation`: what all formats have in common.

A message says text with marks in it (`<image>`, `<video>`, `<audio>`), each of which takes the next medium from the
row's lists, or a list of typed parts (`parts.py`), which may hold their media themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from lading.conversation import parts as typed_parts
from lading.conversation.layout import Layout
from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import Conversation, MediaPart, Message, Part, Row, TextPart

MARKS: Mapping[str, MediaKind] = {f"<{kind}>": kind for kind in MEDIA_KINDS}
ALONE = re.compile("(" + "|".join(MARKS) + ")")
WITH_BREAKS = re.compile("\n?(" + "|".join(MARKS) + ")\n?")


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnFormat:
    """What formats do differently with the same messages."""

    marks: re.Pattern[str] = ALONE
    """What stands for a medium in text: the mark alone, or with the line breaks around it."""
    kinds: Mapping[str, MediaKind] = field(default_factory=lambda: MARKS)
    """Which list a mark takes its medium from."""
    unplaced_first: bool = False
    """Whether media that nothing in the text speaks of go before the first user's words, all of them."""


USUAL = TurnFormat()
MEDIA_FIRST = TurnFormat(unplaced_first=True)


def read_turns(row: Row, layout: Layout, *, messages: Any = None, turn_format: TurnFormat = USUAL) -> Conversation:
    """The conversation that a row's messages, or the given ones, hold with its media; `SkipSample` when they do not fit
    together.
    """
    where = row.key.where
    messages = layout.messages(row.value, where) if messages is None else messages
    listed = as_list(messages)
    if listed is None:
        raise SkipSample(
            Reason.BAD_ROW, found=f"messages as a {type(messages).__name__}", wanted="a list of messages", where=where
        )
    refuse_tools(row.value, listed, where, layout.column("tools"))
    reader = _Reader(
        layout=layout,
        turn_format=turn_format,
        waiting={kind: iter(layout.media(row.value, kind)) for kind in MEDIA_KINDS},
        where=where,
    )
    turns = tuple(reader.message(message) for message in listed)
    if turn_format.unplaced_first and not any(isinstance(part, MediaPart) for turn in turns for part in turn.parts):
        turns = reader.with_all_first(turns)
    if not is_empty(system := row.value.get(layout.column("system"))):
        turns = _with_system_column(turns, system, where)
    for kind, rest in reader.waiting.items():
        if left := len(list(rest)):
            refuse_leftovers(kind, left, where)
    return validate(Conversation(key=row.key, messages=turns))


def as_list(messages: Any) -> list[Any] | tuple[Any, ...] | None:
    """Messages as they are stored → a list: columns of their own (as `datasets` may store them) or JSON text, too.

    >>> as_list({"from": ["human", "gpt"], "value": ["Hi", "Ho"]})
    [{'from': 'human', 'value': 'Hi'}, {'from': 'gpt', 'value': 'Ho'}]
    >>> as_list("Hi") is None
    True
    """
    if isinstance(messages, str) and messages.lstrip().startswith("["):
        try:
            messages = json.loads(messages)
        except (ValueError, RecursionError):
            return None
    if isinstance(messages, list):
        return messages
    if isinstance(messages, Mapping) and messages and all(isinstance(own, list) for own in messages.values()):
        if len({len(own) for own in messages.values()}) > 1:
            return None
        return [dict(zip(messages, values, strict=True)) for values in zip(*messages.values(), strict=True)]
    return messages if isinstance(messages, tuple) else None


def _with_system_column(turns: tuple[Message, ...], system: Any, where: str) -> tuple[Message, ...]:
    """A system prompt in a column of its own goes first, unless the messages have one."""
    if turns and turns[0].role == "system":
        return turns
    if not isinstance(system, str):
        raise SkipSample(
            Reason.BAD_ROW, found=f"a system prompt as a {type(system).__name__}", wanted="text", where=where
        )
    refuse_half_characters(system, where)
    return (Message(role="system", parts=(TextPart(text=system),)), *turns)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Reader:
    """One row's messages, and its media that wait for their places."""

    layout: Layout
    turn_format: TurnFormat
    waiting: Mapping[MediaKind, Iterator[Any]]
    where: str

    def message(self, message: object) -> Message:
        if not isinstance(message, (dict, Mapping)):  # a dict is recognised quickly, a Mapping is not
            raise SkipSample(
                Reason.BAD_ROW, found=f"a message as a {type(message).__name__}", wanted="an object", where=self.where
            )
        role = self.layout.role(message, self.where)
        content = self.layout.content(message, self.where)
        pieces: list[str | Part] = typed_parts.pieces(content, self.where) if isinstance(content, list) else [content]
        # Beside typed media, a mark in the text is a word like any other.
        marked = not any(isinstance(piece, MediaPart) for piece in pieces)
        found: list[Part] = []
        for piece in pieces:
            if isinstance(piece, str):
                refuse_half_characters(piece, self.where)
                found += self._split(piece) if marked else [TextPart(text=piece)]
            elif isinstance(piece, MediaPart) and piece.reference is None:
                found.append(self._next_medium(piece.kind))
            elif isinstance(piece, MediaPart):
                found.append(self.layout.medium(piece.kind, piece.reference, self.where))
            else:
                raise SkipSample(
                    Reason.BAD_ROW,
                    found=f"message content as a {type(piece).__name__}",
                    wanted="text, or a list of parts",
                    where=self.where,
                )
        return Message(role=role, parts=tuple(found))

    def with_all_first(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        """The turns with every medium that waits before the first user's words."""
        place = next((place for place, turn in enumerate(turns) if turn.role == "user"), None)
        if place is None:
            return turns
        shown = [self.layout.medium(kind, value, self.where) for kind, rest in self.waiting.items() for value in rest]
        first = replace(turns[place], parts=(*shown, *turns[place].parts))
        return (*turns[:place], first, *turns[place + 1 :])

    def _split(self, text: str) -> list[Part]:
        found: list[Part] = []
        for piece in self.turn_format.marks.split(text):
            if piece in MARKS:
                found.append(self._next_medium(self.turn_format.kinds[piece]))
            elif piece:
                found.append(TextPart(text=piece))
        return found

    def _next_medium(self, kind: MediaKind) -> MediaPart:
        value = next(self.waiting[kind], None)
        if value is None:
            raise SkipSample(
                Reason.MARKS_WITHOUT_MEDIA,
                found=f"more <{kind}> marks than {kind}s",
                wanted="one for each mark",
                where=self.where,
            )
        return self.layout.medium(kind, value, self.where)


def validate(conversation: Conversation) -> Conversation:
    """The conversation itself, or the reason why it cannot be trained on."""
    where = conversation.key.where
    if not conversation.messages:
        raise SkipSample(Reason.EMPTY_CONVERSATION, found="no messages", wanted="a question and an answer", where=where)
    roles = [message.role for message in conversation.messages]
    if "assistant" not in roles:
        raise SkipSample(
            Reason.NO_ASSISTANT_TURN,
            found=f"only {', '.join(dict.fromkeys(roles))} turns",
            wanted="an assistant turn to train on",
            where=where,
        )
    return conversation


def refuse_tools(row: Mapping[str, Any], messages: Sequence[Any], where: str, column: str = "tools") -> None:
    """Tool definitions and calls are not rendered yet; training without them would teach answers out of nowhere."""
    calls = any(isinstance(message, (dict, Mapping)) and message.get("tool_calls") for message in messages)
    tools = row.get(column)
    # A list of tools is often kept as JSON text, and an empty one is written in several ways.
    none = is_empty(tools) or (isinstance(tools, str) and "".join(tools.split()) in ("", "[]", "{}", "null"))
    if calls or not none:
        raise SkipSample(
            Reason.BAD_ROW, found="tool calls or definitions", wanted="a conversation in words and media", where=where
        )


def is_empty(value: Any) -> bool:
    """Whether a column says nothing: null, or a text, list or object with nothing in it.

    >>> is_empty(None), is_empty({}), is_empty([""])
    (True, True, False)
    """
    return value is None or (isinstance(value, (str, list, tuple, Mapping)) and not value)


def refuse_half_characters(text: str, where: str) -> None:
    """A lone surrogate, as a broken escape in JSON leaves it, cannot be tokenised."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"half a character (a lone surrogate) at place {error.start} of a message",
            wanted="text that can be written as UTF-8",
            where=where,
        ) from error


def refuse_leftovers(kind: MediaKind, left: int, where: str, wanted: str = "a mark in the text for each") -> NoReturn:
    """Media that no mark speaks of would be lost."""
    raise SkipSample(
        Reason.MEDIA_WITHOUT_MARKS,
        found=f"{left} more {kind}{'s' if left > 1 else ''} than <{kind}> marks",
        wanted=wanted,
        where=where,
    )
