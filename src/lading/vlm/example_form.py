"""`Conversation` ⇄ the example form that trainers pass around: a dict with typed parts.

    {"conversation": [{"role": "user", "content": [{"type": "image", "image": …}, {"type": "text", "text": "Who?"}]},
                      {"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}]}

Text in this form is taken as it is: an answer that happens to contain `<image>` is no mark any more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lading.conversation import parts as typed_parts
from lading.conversation.layout import ROLES, Layout, given_at_all
from lading.conversation.turns import refuse_half_characters, refuse_leftovers, refuse_tools, validate
from lading.errors import Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.records import Conversation, MediaPart, Message, Part, Role, SampleKey, TextPart

COLUMN = "conversation"
_REFERENCE_KEYS = ("type", "path", "bytes", "url")


def to_example(conversation: Conversation) -> dict[str, Any]:
    """The example form of a conversation. Media stay references: nothing is opened.

    >>> key = SampleKey(index=0, source="s", where="here")
    >>> answer = Message(role="assistant", parts=(TextPart(text="Ada."),))
    >>> to_example(Conversation(key=key, messages=(answer,)))
    {'conversation': [{'role': 'assistant', 'content': [{'type': 'text', 'text': 'Ada.'}]}]}
    """
    turns = [
        {"role": message.role, "content": [_exported(part) for part in message.parts]}
        for message in conversation.messages
    ]
    return {COLUMN: turns}


def from_example(example: Any, key: SampleKey) -> Conversation:
    """The conversation an example holds; `SkipSample` when it holds none that can be trained on.

    A media part without its medium takes the next one from beside the conversation (`images`, `audio` …). One beside
    it that no part shows is refused: it would be lost, and a mark in the text is only text here.

    >>> key = SampleKey(index=0, source="s", where="here")
    >>> talk = from_example({"conversation": [{"role": "user", "content": [{"type": "image", "image": "ada.jpg"}]},
    ...                                       {"role": "assistant", "content": "Ada."}]}, key)
    >>> talk.media[0].reference
    'ada.jpg'
    """
    return validate(filled(read_turns(example, key)))


def read_turns(example: Any, key: SampleKey) -> Conversation:
    """The same for whoever only looks: there need be nothing to train on, and a medium may be missing (`None`)."""
    turns = example.get(COLUMN) if isinstance(example, Mapping) else None
    if not isinstance(turns, (list, tuple)):
        keys = ", ".join(map(str, example)) if isinstance(example, Mapping) else f"type {type(example).__name__}"
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"an example with {keys or 'no keys'}",
            wanted=f"a list of turns under {COLUMN!r}",
            where=key.where,
        )
    refuse_tools(example, turns, key.where)
    waiting = {kind: iter(_beside(example, kind)) for kind in MEDIA_KINDS}
    messages = tuple(_message(turn, waiting, key.where) for turn in turns)
    conversation = Conversation(key=key, messages=messages)
    shown = {part.kind for part in conversation.media}
    for kind in MEDIA_KINDS:
        # One under the singular (`audio`) may be a decoded copy of what stands in the conversation, if any does.
        if given_at_all(example.get(f"{kind}s")) or kind not in shown:
            wanted = f'a part {{"type": "{kind}"}} of the conversation for each'
            if left := len(list(waiting[kind])):
                refuse_leftovers(kind, left, key.where, wanted)
    return conversation


def filled(conversation: Conversation) -> Conversation:
    """The conversation itself; `SkipSample` where a part is without its medium."""
    kind = next((part.kind for part in conversation.media if part.reference is None), None)
    if kind is not None:
        raise SkipSample(
            Reason.MARKS_WITHOUT_MEDIA,
            found=f"a part of type {kind!r} without its {kind}",
            wanted=f'{{"type": "{kind}", "{kind}": …}}, or the {kind} beside the conversation',
            where=conversation.key.where,
        )
    return conversation


def _exported(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    reference = list(part.reference) if isinstance(part.reference, tuple) else part.reference
    return {**part.options, "type": part.kind, part.kind: reference}


def _message(turn: object, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> Message:
    if not isinstance(turn, Mapping) or "content" not in turn:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a turn as a {type(turn).__name__} without content",
            wanted='{"role": …, "content": …}',
            where=where,
        )
    content = turn["content"]
    if not isinstance(content, (str, list, tuple)):
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"content as a {type(content).__name__}",
            wanted="text, or a list of parts",
            where=where,
        )
    given = [content] if isinstance(content, str) else list(content)
    pieces = typed_parts.pieces(given, where)
    parts = [_part(piece, source, waiting, where) for piece, source in zip(pieces, given, strict=True)]
    return Message(role=_role(turn.get("role"), where), parts=tuple(parts))


def _role(tag: object, where: str) -> Role:
    if tag not in ROLES:
        raise SkipSample(
            Reason.UNKNOWN_ROLE, found=f"role {tag!r}", wanted=f"one of {', '.join(sorted(ROLES))}", where=where
        )
    return ROLES[str(tag)]


def _part(piece: str | Part, source: Any, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> Part:
    if isinstance(piece, str):
        refuse_half_characters(piece, where)
        return TextPart(text=piece)
    if isinstance(piece, TextPart):
        return piece
    kind = piece.kind
    value = next(waiting[kind], None) if piece.reference is None else piece.reference
    hidden = (*_REFERENCE_KEYS, kind, f"{kind}_url")
    options = {name: extra for name, extra in source.items() if name not in hidden}
    if value is None or (isinstance(value, Mapping) and not {"path", "bytes"} & set(value)):
        # Not there, or decoded already, in some library's own form: {"array": …, "sampling_rate": …}.
        return MediaPart(kind=kind, reference=value, options=options)
    medium = Layout().medium(kind, value, where)
    return replace(medium, options={**options, **medium.options})


def _beside(example: Mapping[str, Any], kind: MediaKind) -> list[Any]:
    """Media next to the conversation: a list under the plural, or one under the singular."""
    several, one = example.get(f"{kind}s"), example.get(kind)
    if given_at_all(several):
        return list(several) if isinstance(several, (list, tuple)) else [several]
    return [] if _holds_nothing(one) else [one]


def _holds_nothing(medium: Any) -> bool:
    """Whether a column of one medium is empty in this row: tables write that in several ways."""
    if isinstance(medium, Mapping):
        return all(medium.get(name) is None for name in ("path", "bytes", "array"))
    return medium is None or (isinstance(medium, (str, list, tuple)) and not medium)
