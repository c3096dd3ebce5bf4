"""The formats that rows come in. Adding one is a line here, and its functions in `varieties`, `presets`
or a file of its own.

Formats in the first half are varieties of messages: they share their columns, and what tells them apart is a sign in
some of the rows. Each of the others has columns of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from lading.conversation import alpaca, cauldron, preference, presets, prompt_completion, question_answer, varieties
from lading.conversation.extras import as_weight
from lading.conversation.keys import REJECTED_KEYS, Reading, given, refuse_disobeyed, unread_keys
from lading.conversation.layout import MEDIA_COLUMNS, MESSAGE_COLUMNS, Layout
from lading.conversation.turns import read_turns
from lading.errors import ConfigError, Reason, SkipSample, UnknownName
from lading.records import Conversation, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One way to write a conversation down. Law: `lacks`, `signs` and `read` look at one row, and open nothing."""

    name: str
    title: str
    """What it is, in a few words."""
    columns: tuple[str, ...]
    """The columns it is known by."""
    also: tuple[str, ...] = ()
    """Other columns that are read where a row has them."""
    lacks: Callable[[Mapping[str, Any], Layout], tuple[str, ...]]
    """What keeps a row from being this; nothing where it is."""
    read: Callable[[Row, Layout], Conversation]
    signs: Callable[[Mapping[str, Any], Layout], bool] | None = None
    """Of a variety of messages: whether a row shows that it is this one."""
    well_known: bool = False
    """Whether the data set is known as a whole, so that nothing else in its rows says how to train."""


def _variety(name: str, title: str, *, read: Any, signs: Any) -> Format:
    return Format(name=name, title=title, columns=MESSAGE_COLUMNS, lacks=varieties.lacks, read=read, signs=signs)


MESSAGES = (
    _variety("sharegpt", "messages with marks in their text", read=read_turns, signs=varieties.is_sharegpt),
    _variety("llava", "messages with one `image` beside them", read=varieties.read_llava, signs=varieties.is_llava),
    _variety("openai", "messages of typed parts, media inside", read=read_turns, signs=varieties.is_openai),
    _variety("trl", "messages, media beside them, no marks", read=varieties.read_trl, signs=varieties.is_trl),
)
PREFERENCE = Format(
    name="preference",
    title="a chosen and a rejected answer",
    columns=preference.COLUMNS,
    also=("prompt", *MESSAGE_COLUMNS),
    lacks=preference.lacks,
    read=preference.read,
)
COLUMNS = (
    Format(
        name="prompt_completion",
        title="a prompt and a completion",
        columns=tuple(prompt_completion.ROLES),
        lacks=prompt_completion.lacks,
        read=prompt_completion.read,
    ),
    Format(
        name="alpaca",
        title="an instruction and its output",
        columns=tuple(alpaca.NEEDED.values()),
        also=("input", "history"),
        lacks=alpaca.lacks,
        read=alpaca.read,
    ),
    Format(
        name="question_answer",
        title="a question and its answer",
        columns=tuple(question_answer.SIDES),
        lacks=question_answer.lacks,
        read=question_answer.read,
    ),
    Format(
        name="cauldron",
        title="pairs of user and assistant texts",
        columns=(cauldron.COLUMN,),
        lacks=cauldron.lacks,
        read=cauldron.read,
    ),
)


def _by_name(name: str, title: str, *, columns: tuple[str, ...], read: Any) -> Format:
    def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
        del layout
        return tuple(column for column in columns if column not in row)

    return Format(name=name, title=title, columns=columns, lacks=lacks, read=read, well_known=True)


NAMED = (
    _by_name(
        "cord_v2", "receipts and their contents as tokens (CORD-v2)", columns=presets.CORD_V2, read=presets.cord_v2
    ),
    _by_name("cv17", "recordings and what is said in them (CommonVoice 17)", columns=presets.CV17, read=presets.cv17),
    _by_name("medpix", "medical pictures with questions (MedPix)", columns=presets.MEDPIX, read=presets.medpix),
    _by_name("rdr", "pictures and what they show (RDR items)", columns=presets.RDR, read=presets.rdr),
    _by_name("unimm_chat", "turns about a picture (UniMM-Chat)", columns=presets.UNIMM_CHAT, read=presets.unimm_chat),
)
"""Formats of well-known data sets. They are taken only by their name: other data have such columns, too."""
MESSAGES_SET = frozenset(MESSAGE_COLUMNS)
VARIETIES = frozenset(own.name for own in MESSAGES)
SHARED_COLUMNS = ("system", "tools", "_text_tokens", "_media_tokens", "mm_inputs_meta")
"""Columns that are read whatever the format, and those that `lading count --annotate` writes."""
FORMATS: Mapping[str, Format] = {own.name: own for own in (*MESSAGES, PREFERENCE, *COLUMNS, *NAMED)}


def find_format(name: str, where: str = "") -> Format:
    """A format by its name.

    >>> find_format("lava")
    Traceback (most recent call last):
        ...
    lading.errors.UnknownName: found format 'lava'; wanted one of alpaca, …; did you mean 'llava'?
    """
    if name not in FORMATS:
        raise UnknownName(kind="format", name=name, known=FORMATS, where=where)
    return FORMATS[name]


def read_conversation(row: Row, layout: Layout) -> Conversation:
    """The conversation a row holds; `SkipSample` when marks and media, roles or turns do not fit.

    >>> from lading.records import SampleKey
    >>> row = Row(key=SampleKey(index=0, source="s", where="d.jsonl:1"), value={
    ...     "conversations": [{"from": "human", "value": "Who?<image>"}, {"from": "gpt", "value": "Ada."}],
    ...     "images": ["ada.jpg"]})
    >>> [part.kind for part in read_conversation(row, Layout()).media]
    ['image']
    """
    name = layout.format
    if name is None:  # a row that comes alone: by the columns it has
        by_columns = (PREFERENCE,) if layout.has_messages(row.value) else (PREFERENCE, *COLUMNS)
        name = next((own.name for own in by_columns if not own.lacks(row.value, layout)), "sharegpt")
    chosen = FORMATS[name]
    conversation = chosen.read(row, layout)
    if chosen.well_known:
        return conversation
    read, keys = layout.read_columns.get(name), row.value.keys()
    if read is None:
        read = layout.read_columns[name] = _read_columns(chosen, layout)
    unread = conversation.unread
    if not keys <= read:
        unread = (*_unread_columns(row.value, read), *unread)
    if len(MESSAGES_SET & keys) > 1 and name in VARIETIES and "messages" not in layout.columns:
        # Of columns that could be the messages, the first one is.
        unread += tuple([own for own in MESSAGE_COLUMNS if given(row.value.get(own))][1:])
    if unread:
        refuse_disobeyed(unread, layout.reading, row.key.where)
        conversation = replace(conversation, unread=unread)
    return _weighted(conversation, row, layout.reading)


def _unread_columns(row: Mapping[str, Any], read: frozenset[str]) -> Iterator[str]:
    """The columns that nobody reads, less those which by their value ask for nothing that is not done."""
    for key in unread_keys(row, read):
        value = row[key]
        if (key == "weight" and value in (1, True)) or (key in ("label", "kto_tag") and value is True):
            continue
        yield f"{key} (a class)" if key == "label" and not isinstance(value, bool) else key


def _read_columns(chosen: Format, layout: Layout) -> frozenset[str]:
    """The columns of a row that are read, by their own names."""
    usual = [name for names in MEDIA_COLUMNS.values() for name in names]
    own = [*chosen.columns, *chosen.also, *usual, *SHARED_COLUMNS, *layout.columns.values()]
    weights = ("loss_weight", *(("weight",) if layout.reading.row_weight else ()))
    rejected = REJECTED_KEYS if layout.reading.preference == "chosen" else ()
    return frozenset((*own, *weights, *rejected))


def _weighted(conversation: Conversation, row: Row, reading: Reading) -> Conversation:
    """The conversation with the weights that its row and the run give its answers."""
    value, messages = row.value, conversation.messages
    as_usual = reading.train_on == "all" and not reading.row_weight and "loss_weight" not in value
    if as_usual and all(own.weight == 1.0 for own in messages):
        return conversation
    names = ("loss_weight", *(("weight",) if reading.row_weight else ()))
    asked = [name for name in names if given(value.get(name)) and name not in reading.ignore_keys]
    whole = _row_weight(value[asked[0]], asked[0], row.key.where) if asked else 1.0
    if whole != 1:
        messages = tuple(replace(own, weight=own.weight * whole) for own in messages)
    if reading.train_on == "last":
        last = max(place for place, own in enumerate(messages) if own.role == "assistant")
        messages = tuple(own if place == last else replace(own, weight=0.0) for place, own in enumerate(messages))
    weights = {own.weight for own in messages if own.role == "assistant"}
    if not weights <= {0.0, 1.0} and not reading.loss_weights:
        raise ConfigError(
            found=f"a loss weight of {next(iter(weights - {0.0, 1.0})):g}",
            wanted="loss_weights=True, and a loss that uses them (lading.weighted_loss)",
            consequence="model(**batch).loss cannot know them: every answer would count as much",
            where=row.key.where,
        )
    return conversation if messages is conversation.messages else replace(conversation, messages=messages)


def _row_weight(value: Any, name: str, where: str) -> float:
    if (number := as_weight(value)) is not None:
        return number
    raise SkipSample(
        Reason.BAD_ROW,
        found=f"{name} {value!r}",
        wanted="a number from 0 up: how much the row's loss counts",
        where=where,
    )
