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
from lading.conversation.extras import is_weightless, listed_objects, refuse_half_characters, with_extras
from lading.conversation.keys import TOOL_KEYS, WEIGHT_KEYS, given, unread_keys
from lading.conversation.layout import CONTENT_KEYS, ROLE_KEYS, Layout
from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import REASONING_KEYS, Conversation, MediaPart, Message, Part, Role, Row, TextPart

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


MESSAGE_KEYS = frozenset({*ROLE_KEYS, *CONTENT_KEYS})
SPOKEN_KEYS = frozenset({*MESSAGE_KEYS, *WEIGHT_KEYS, *REASONING_KEYS, *TOOL_KEYS})
"""Keys of an assistant's message that are read."""
MEDIUM_KEYS = frozenset({"path", "bytes", "array", "sampling_rate", "url", "type"})
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
    reader = _Reader.of(row, layout, turn_format)
    try:
        turns = reader.turns(listed)
    except SkipSample as skip:
        if skip.reason is not Reason.MARKS_WITHOUT_MEDIA:
            raise
        # An answer may speak of `<image>` in prose or code: where the user's marks alone pair off with the media, they
        # are the marks.
        try:
            reader = _Reader.of(row, layout, turn_format, marked_roles=("user",))
            turns = reader.turns(listed)
        except SkipSample:
            raise skip from None
    if given(system := row.value.get(layout.column("system"))):
        turns = _with_system_column(turns, system, where)
    tools = row.value.get(layout.column("tools"))
    listed_tools = listed_objects(tools, "tools", where) if tools else ()
    unread = tuple(dict.fromkeys(reader.unread)) if reader.unread else ()
    return validate(Conversation(key=row.key, messages=turns, tools=listed_tools, unread=unread))


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
    marked_roles: tuple[str, ...] = ()
    """In whose text marks stand for media; nobody named: in everybody's."""
    unread: list[str] = field(default_factory=list)
    """Keys of messages and parts that nobody reads."""

    @classmethod
    def of(cls, row: Row, layout: Layout, turn_format: TurnFormat, marked_roles: tuple[str, ...] = ()) -> _Reader:
        waiting = {kind: iter(layout.media(row.value, kind)) for kind in MEDIA_KINDS}
        return cls(
            layout=layout, turn_format=turn_format, waiting=waiting, where=row.key.where, marked_roles=marked_roles
        )

    def turns(self, messages: Sequence[Any]) -> tuple[Message, ...]:
        """All messages, with all media that wait for a place."""
        turns = tuple(self.message(message) for message in messages)
        if self.turn_format.unplaced_first and not any(
            isinstance(part, MediaPart) for turn in turns for part in turn.parts
        ):
            turns = self.with_all_first(turns)
        for kind, rest in self.waiting.items():
            if left := len(list(rest)):
                refuse_leftovers(kind, left, self.where)
        return turns

    def message(self, message: object) -> Message:
        if not isinstance(message, (dict, Mapping)):  # a dict is recognised quickly, a Mapping is not
            raise SkipSample(
                Reason.BAD_ROW, found=f"a message as a {type(message).__name__}", wanted="an object", where=self.where
            )
        role = self.layout.role(message, self.where)
        content, thoughts = self._content(message, role)
        pieces: list[str | Part] = typed_parts.pieces(content, self.where) if isinstance(content, list) else [content]
        # Beside typed media, a mark in the text is a word like any other.
        marked = not any(isinstance(piece, MediaPart) for piece in pieces)
        marked = marked and (not self.marked_roles or role in self.marked_roles)
        found: list[Part] = []
        for piece in pieces:
            if isinstance(piece, str):
                refuse_half_characters(piece, self.where)
                found += self._split(piece) if marked else [TextPart(text=piece)]
            elif isinstance(piece, MediaPart) and piece.reference is None:
                found.append(self._next_medium(piece.kind))
            elif isinstance(piece, MediaPart):
                medium = self._medium(piece.kind, piece.reference)
                found.append(replace(medium, options=piece.options) if piece.options else medium)
            else:
                raise SkipSample(
                    Reason.BAD_ROW,
                    found=f"message content as a {type(piece).__name__}",
                    wanted="text, or a list of parts",
                    where=self.where,
                )
        turn = Message(role=role, parts=tuple(found))
        if len(message) > 2:
            self._note_unread(turn, message)
        elif not thoughts:
            return turn
        return with_extras(turn, message, thoughts, self.layout.reading, self.where)

    def _content(self, message: Mapping[str, Any], role: Role) -> tuple[Any, Sequence[str]]:
        """What a message says, and what was thought where its parts say so. Who calls a tool may say nothing."""
        if type(content := message.get("content")) is str and not self.layout.tags:
            return content, ()  # text, where it usually is, needs no further look
        if role == "assistant" and given(message.get("tool_calls")):
            tag = self.layout.tags.get("content_tag")
            if not any(given(message.get(name)) for name in ((tag,) if tag else CONTENT_KEYS)):
                return "", []
        content = self.layout.content(message, self.where)
        if not isinstance(content, list):
            return content, []
        for part in content:
            if isinstance(part, Mapping):
                self.unread.extend(typed_parts.unread(part))
        return typed_parts.without_thoughts(content, self.where) if role == "assistant" else (content, [])

    def _note_unread(self, turn: Message, message: Mapping[str, Any]) -> None:
        spoken = turn.role == "assistant"
        own = ("name", *self.layout.tags.values(), *(TOOL_KEYS if turn.role == "tool" else ()))
        # A weight of nothing says what is done anyway: only what an assistant says is trained on. One of 1 is as usual.
        weightless = () if spoken else [name for name in WEIGHT_KEYS if is_weightless(message.get(name))]
        read = {*(SPOKEN_KEYS if spoken else MESSAGE_KEYS), *own, *weightless}
        self.unread.extend(unread_keys(message, read, "messages[]."))

    def _medium(self, kind: MediaKind, value: Any) -> MediaPart:
        part = self.layout.medium(kind, value, self.where)
        if part.options:
            read = (*MEDIUM_KEYS, "fps") if isinstance(part.reference, tuple) else MEDIUM_KEYS
            self.unread.extend(unread_keys(part.options, read, f"{kind}s[]."))
        return part

    def with_all_first(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        """The turns with every medium that waits before the first user's words."""
        place = next((place for place, turn in enumerate(turns) if turn.role == "user"), None)
        if place is None:
            return turns
        shown = [self._medium(kind, value) for kind, rest in self.waiting.items() for value in rest]
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
        return self._medium(kind, value)


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


def refuse_leftovers(kind: MediaKind, left: int, where: str, wanted: str = "a mark in the text for each") -> NoReturn:
    """Media that no mark speaks of would be lost."""
    raise SkipSample(
        Reason.MEDIA_WITHOUT_MARKS,
        found=f"{left} more {kind}{'s' if left > 1 else ''} than <{kind}> marks",
        wanted=wanted,
        where=where,
    )
