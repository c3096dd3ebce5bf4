"""Examples: the form in which trainers pass conversations around, a dict with typed parts.

    {"conversation": [{"role": "user", "content": [{"type": "image", "image": …}, {"type": "text", "text": "Who?"}]},
                      {"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}]}

Text in this form is taken as it is: an answer that happens to contain `<image>` is no mark any more. Beside the
conversation stands what other parts of a trainer look for: counts made beforehand (`_text_tokens` …), or a decoded
sound. `Examples` is a lazy list of them, made of the rows of a corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout, read_conversation
from lading.conversation.extras import listed_objects, refuse_half_characters, with_extras
from lading.conversation.keys import Reading, given
from lading.conversation.layout import ROLES, given_at_all
from lading.conversation.parts import pieces, without_thoughts
from lading.conversation.turns import refuse_leftovers, validate
from lading.errors import ConfigError, Reason, SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.ledger import Ledger
from lading.media.opening import refuse_outside
from lading.records import Conversation, MediaPart, Message, Part, Row, SampleKey, TextPart
from lading.sources import Corpus
from lading.vlm.estimate import collect_stats

Example = dict[str, Any]
CONVERSATION = "conversation"
CARRIED = ("_text_tokens", "_media_tokens", "mm_inputs_meta")
"""Columns of a row that ride along: counts and sizes that were worked out beforehand."""
_REFERENCE_KEYS = ("type", "path", "bytes", "url")


def to_example(conversation: Conversation) -> Example:
    """The example form of a conversation. Media stay references: nothing is opened.

    >>> key = SampleKey(index=0, source="s", where="here")
    >>> answer = Message(role="assistant", parts=(TextPart(text="Ada."),))
    >>> to_example(Conversation(key=key, messages=(answer,)))
    {'conversation': [{'role': 'assistant', 'content': [{'type': 'text', 'text': 'Ada.'}]}]}
    """
    return {
        CONVERSATION: [
            {"role": message.role, "content": [_exported(part) for part in message.parts], **_extras(message)}
            for message in conversation.messages
        ],
        **({"tools": list(conversation.tools)} if conversation.tools else {}),
    }


def _extras(message: Message) -> dict[str, Any]:
    """What a message says besides its role and content, under the names by which it is read again."""
    own = {"reasoning_content": message.thought, "tool_calls": list(message.calls), **dict(message.names)}
    return {**{name: value for name, value in own.items() if value}, **_weights(message)}


def _weights(message: Message) -> dict[str, float]:
    return {} if message.weight == 1 else {"weight": message.weight}


def _exported(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    reference = list(part.reference) if isinstance(part.reference, tuple) else part.reference
    return {**part.options, "type": part.kind, part.kind: reference}


def from_example(example: Any, key: SampleKey) -> Conversation:
    """The conversation an example holds; `SkipSample` when it holds none that can be trained on.

    A media part without its medium takes the next one from beside the conversation (`images`, `audio` …). One beside
    it that no part shows is refused: it would be lost, and a mark in the text is only text here.

    >>> key = SampleKey(index=0, source="s", where="here")
    >>> conversation = from_example({"conversation": [
    ...     {"role": "user", "content": [{"type": "image", "image": "ada.jpg"}]},
    ...     {"role": "assistant", "content": "Ada."}]}, key)
    >>> conversation.media[0].reference
    'ada.jpg'
    """
    conversation = read_turns(example, key)
    kind = next((part.kind for part in conversation.media if part.reference is None), None)
    if kind is not None:
        raise SkipSample(
            Reason.MARKS_WITHOUT_MEDIA,
            found=f"a part of type {kind!r} without its {kind}",
            wanted=f'{{"type": "{kind}", "{kind}": …}}, or the {kind} beside the conversation',
            where=key.where,
        )
    return validate(conversation)


def read_turns(example: Any, key: SampleKey) -> Conversation:
    """The same for whoever only looks: there need be nothing to train on, and a medium may be missing (`None`)."""
    turns = example.get(CONVERSATION) if isinstance(example, Mapping) else None
    if not isinstance(turns, (list, tuple)):
        keys = ", ".join(map(str, example)) if isinstance(example, Mapping) else f"type {type(example).__name__}"
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"an example with {keys or 'no keys'}",
            wanted=f"a list of turns under {CONVERSATION!r}",
            where=key.where,
        )
    waiting = {kind: iter(_beside(example, kind)) for kind in MEDIA_KINDS}
    messages = tuple(_message(turn, waiting, key.where) for turn in turns)
    tools = listed_objects(example.get("tools"), "tools", key.where)
    conversation = Conversation(key=key, messages=messages, tools=tools)
    shown = [part.kind for part in conversation.media]
    for kind, rest in waiting.items():
        # One under the singular (`audio`) may be a decoded copy of what stands in the conversation, if any does.
        left = len(list(rest))
        if left and (kind not in shown or given_at_all(example.get(f"{kind}s"))):
            refuse_leftovers(kind, left, key.where, f'a part {{"type": "{kind}"}} of the conversation for each')
    return conversation


def _beside(example: Mapping[str, Any], kind: MediaKind) -> list[Any]:
    """Media next to the conversation: a list under the plural, or one under the singular."""
    several, one = example.get(f"{kind}s"), example.get(kind)
    if given_at_all(several):
        return list(several) if isinstance(several, (list, tuple)) else [several]
    # That a row has none is written in several ways by tables.
    if isinstance(one, Mapping):
        empty = all(one.get(name) is None for name in ("path", "bytes", "array"))
    else:
        empty = one is None or (isinstance(one, (str, list, tuple)) and not one)
    return [] if empty else [one]


def _message(turn: object, waiting: Mapping[MediaKind, Iterator[Any]], where: str) -> Message:
    if not isinstance(turn, Mapping) or not {"content", "tool_calls"} & set(turn):
        found, wanted = f"a turn as a {type(turn).__name__} without content", '{"role": …, "content": …}'
        raise SkipSample(Reason.BAD_ROW, found=found, wanted=wanted, where=where)
    role, called = turn.get("role"), given(turn.get("tool_calls"))
    content = "" if called and turn.get("content") is None else turn.get("content")
    if not isinstance(content, (str, list, tuple)):
        found, wanted = f"content as a {type(content).__name__}", "text, or a list of parts"
        raise SkipSample(Reason.BAD_ROW, found=found, wanted=wanted, where=where)
    listed, thoughts = (
        ([content] if content else [], []) if isinstance(content, str) else without_thoughts(content, where)
    )
    parts = tuple(
        _part(piece, source, waiting, where) for piece, source in zip(pieces(listed, where), listed, strict=True)
    )
    if role not in ROLES:
        wanted = f"one of {', '.join(sorted(ROLES))}"
        raise SkipSample(Reason.UNKNOWN_ROLE, found=f"role {role!r}", wanted=wanted, where=where)
    message = Message(role=ROLES[str(role)], parts=parts)
    if len(turn) <= 2 and not thoughts:
        return message
    message = with_extras(message, turn, thoughts, Reading(), where)
    if message.weight not in (0, 1):
        raise ConfigError(
            found=f"a loss weight of {message.weight:g}",
            wanted="0 or 1 here, or lading.Loader(loss_weights=True)",
            consequence="the answer would count as much as every other",
            where=where,
        )
    return message


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


class Rows(Protocol):
    """Rows by number, each with a name for good."""

    def __len__(self) -> int: ...

    def key(self, number: int, /) -> SampleKey: ...

    def row(self, number: int, /) -> Row: ...


class Examples(Sequence[Example]):
    """A lazy list of examples: `examples[i]` reads, parses and converts that one row.

    `numbers` are the rows it shows, all of them when `None`. Slices are lazy too. It pickles small, for workers.
    """

    def __init__(self, *, rows: Rows, read: Callable[[Row], Example], numbers: NDArray[np.int64] | None = None) -> None:
        self.rows, self.read = rows, read
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.rows) if self.numbers is None else len(self.numbers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.rows!r})"

    @overload
    def __getitem__(self, place: int) -> Example: ...

    @overload
    def __getitem__(self, place: slice) -> Examples: ...

    def __getitem__(self, place: int | slice) -> Example | Examples:
        if isinstance(place, slice):
            shown = np.arange(len(self), dtype=np.int64) if self.numbers is None else self.numbers
            return Examples(rows=self.rows, read=self.read, numbers=shown[place])
        return self.read(self.rows.row(self._number(place)))

    def __iter__(self) -> Iterator[Example]:
        return (self[place] for place in range(len(self)))

    def key(self, place: int) -> SampleKey:
        """The name of an example: the same on every rank, whatever share of the rows is shown here."""
        return self.rows.key(self._number(place))

    def ledger(self) -> Ledger:
        """An empty ledger of all rows, whatever share of them is shown here: for a wrapper that replaces some."""
        sources = [self.rows.key(number).source for number in range(len(self.rows))]
        names = list(dict.fromkeys(sources))
        return Ledger(sources=names, source=np.array([names.index(name) for name in sources], dtype=np.int32))

    @cached_property
    def stats(self) -> dict[str, int]:
        """Counts over all examples. The first time, every row is read for it."""
        return collect_stats(self)

    def _number(self, place: int) -> int:
        if not -len(self) <= place < len(self):
            raise IndexError(f"example {place} of {len(self)}")
        place %= len(self)
        return place if self.numbers is None else int(self.numbers[place])


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusReader:
    """Rows of a corpus → examples, each by its own source's format, columns, tags and media folder."""

    corpus: Corpus
    layouts: tuple[Layout, ...]

    def __call__(self, row: Row) -> Example:
        return read_example(row, self.layouts[self.corpus.locate(row.key.index)[0]])


def read_example(row: Row, layout: Layout) -> Example:
    """A row as an example, with the columns that ride along. Media outside the layout's roots are refused here, because
    an example is a plain dictionary, and forgets the roots.
    """
    conversation = read_conversation(row, layout)
    for part in conversation.media:
        refuse_outside(part)
    carried = {name: row.value[name] for name in CARRIED if name in row.value}
    return {**to_example(conversation), **carried}
