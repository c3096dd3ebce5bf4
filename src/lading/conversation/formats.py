"""The formats that rows come in. Adding one is a line here, and its functions in `varieties`, `presets`
or a file of its own.

Formats in the first half are varieties of messages: they share their columns, and what tells them apart is a sign in
some of the rows. Each of the others has columns of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lading.conversation import alpaca, cauldron, presets, prompt_completion, question_answer, varieties
from lading.conversation.layout import MESSAGE_COLUMNS, Layout
from lading.conversation.turns import read_turns
from lading.errors import UnknownName
from lading.records import Conversation, Row


@dataclass(frozen=True, kw_only=True, slots=True)
class Format:
    """One way to write a conversation down. Law: `lacks`, `signs` and `read` look at one row, and open nothing."""

    name: str
    title: str
    """What it is, in a few words."""
    columns: tuple[str, ...]
    """The columns it is known by."""
    lacks: Callable[[Mapping[str, Any], Layout], tuple[str, ...]]
    """What keeps a row from being this; nothing where it is."""
    read: Callable[[Row, Layout], Conversation]
    signs: Callable[[Mapping[str, Any], Layout], bool] | None = None
    """Of a variety of messages: whether a row shows that it is this one."""


def _variety(name: str, title: str, *, read: Any, signs: Any) -> Format:
    return Format(name=name, title=title, columns=MESSAGE_COLUMNS, lacks=varieties.lacks, read=read, signs=signs)


MESSAGES = (
    _variety("sharegpt", "messages with marks in their text", read=read_turns, signs=varieties.is_sharegpt),
    _variety("llava", "messages with one `image` beside them", read=varieties.read_llava, signs=varieties.is_llava),
    _variety("openai", "messages of typed parts, media inside", read=read_turns, signs=varieties.is_openai),
    _variety("trl", "messages, media beside them, no marks", read=varieties.read_trl, signs=varieties.is_trl),
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

    return Format(name=name, title=title, columns=columns, lacks=lacks, read=read)


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
FORMATS: Mapping[str, Format] = {own.name: own for own in (*MESSAGES, *COLUMNS, *NAMED)}


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
        by_columns = () if layout.has_messages(row.value) else COLUMNS
        name = next((own.name for own in by_columns if not own.lacks(row.value, layout)), "sharegpt")
    return FORMATS[name].read(row, layout)
