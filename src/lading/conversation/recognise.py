"""Some rows → the format of a source. A pure function: the same rows, the same answer.

First the columns: the format that most rows have all of. Then, where these are messages, the variety that most rows
show a sign of; text alone shows none, and reads the same in all of them.

    row 1   conversations, image     messages   a sign of llava
    row 2   conversations            messages   no sign             → llava
    row 3   id                       nothing fits; it will be dropped by name
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lading.conversation.formats import COLUMNS, FORMATS, MESSAGES, PREFERENCE, Format, read_conversation
from lading.conversation.layout import Layout
from lading.errors import CorpusError, SkipSample
from lading.fields import MEDIA_KINDS
from lading.records import Row, SampleKey

ROWS = 20
"""Rows of a source that are looked at first."""
SHOWN = 12
"""Columns that a message names."""
ALIKE = 0.8
"""How much a column's name is like another's, for a misspelt one."""
PICTURES = (b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"RIFF", b"II*\x00", b"MM\x00*")
"""How the files of pictures begin, and some of sounds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Recognised:
    """What format rows have, and how sure that is."""

    format: Format
    fitting: int
    """Rows that have all it wants."""
    looked: int
    also: tuple[str, ...] = ()
    """Other formats that as many rows could be."""
    certain: bool = True
    """Whether something speaks for it: not where rows are messages of text alone, which are the same in all varieties.
    Further rows may tell, then."""


def recognise(rows: Sequence[Mapping[str, Any]], layout: Layout, where: str = "") -> Recognised:
    """The format of a source by some of its rows; `CorpusError` where none fits any of them.

    >>> recognise([{"prompt": "Who?", "completion": "Ada."}], Layout()).format.name
    'prompt_completion'
    >>> recognise([{"instruction": "Who?", "result": "Ada."}], Layout(), "d.json")
    Traceback (most recent call last):
        ...
    lading.errors.CorpusError: found columns instruction, result; wanted one of sharegpt …; … [d.json]
    """
    # Of rows that are both, the first is what they are: messages with a chosen answer beside them are preferences.
    groups = (PREFERENCE, MESSAGES[0], *COLUMNS)
    fitting = _counts(groups, lambda own, row: not own.lacks(row, layout), rows)
    most = max(fitting.values())
    if not most:
        raise _nothing_fits(rows, layout, where)
    chosen, *others = [name for name, count in fitting.items() if count == most]
    if chosen == PREFERENCE.name:
        others = []
    certain = True
    if chosen == MESSAGES[0].name:
        shown = _counts(MESSAGES, lambda own, row: own.signs is not None and own.signs(row, layout), rows)
        clearest = max(shown.values())
        certain = clearest > 0
        # Where all of a source is text, they are all the same: it is called by the first.
        chosen, *alike = [name for name, count in shown.items() if count == clearest] if certain else [chosen]
        others = [*alike, *others]
    return Recognised(format=FORMATS[chosen], fitting=most, looked=len(rows), also=tuple(others), certain=certain)


def speaks(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row shows a sign of some variety of messages.

    >>> speaks({"messages": [{"role": "user", "content": "Hi"}]}, Layout())
    False
    """
    return any(own.signs is not None and own.signs(row, layout) for own in MESSAGES)


def _counts(
    formats: Sequence[Format], holds: Callable[[Format, Mapping[str, Any]], bool], rows: Sequence[Mapping[str, Any]]
) -> dict[str, int]:
    return {own.name: sum(holds(own, row) for row in rows) for own in formats}


def _nothing_fits(rows: Sequence[Mapping[str, Any]], layout: Layout, where: str) -> CorpusError:
    columns = list(dict.fromkeys(str(name) for row in rows for name in row))
    shown = ", ".join(columns[:SHOWN]) + (" …" if len(columns) > SHOWN else "")
    return CorpusError(
        found=f"columns {shown or '(none)'}",
        wanted=f"one of {', '.join(FORMATS)}",
        consequence=f"{_nearest(rows, layout)}; a meta file's `format` and `columns` say how rows are read",
        where=where,
    )


def _nearest(rows: Sequence[Mapping[str, Any]], layout: Layout) -> str:
    """The format of which a row has some column, or one that is spelt alike, and the least is missing."""
    near = [
        (len(lacking), own.name, lacking)
        for own in (MESSAGES[0], PREFERENCE, *COLUMNS)
        for row in rows
        for name in own.columns
        if difflib.get_close_matches(name, [str(column) for column in row], n=1, cutoff=ALIKE)
        for lacking in [own.lacks(row, layout)]
    ]
    if not near:
        return "none is near"
    _, name, lacking = min(near, key=lambda one: one[0])
    return f"nearest is {name}, which lacks {' and '.join(lacking)}"


def unread_media(rows: Sequence[Mapping[str, Any]], layout: Layout) -> str | None:
    r"""The first column that holds media as data sets store them, where none of the rows' media are read.

    >>> row = {"question": "Who?", "answer": "Ada.", "picture": {"bytes": b"\x89PNG", "path": None}}
    >>> unread_media([row], Layout(format="question_answer"))
    'picture'
    >>> unread_media([row], Layout(format="question_answer", columns={"images": "picture"})) is None
    True
    """
    if any(_has_media(row, layout) for row in rows):
        return None
    return next((str(name) for row in rows for name, value in row.items() if _holds_media(value)), None)


def _has_media(row: Mapping[str, Any], layout: Layout) -> bool:
    if any(layout.media(row, kind) for kind in MEDIA_KINDS):
        return True
    try:
        return bool(read_conversation(Row(key=SampleKey(index=0, source="", where=""), value=row), layout).media)
    except SkipSample:
        return False


def _holds_media(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and _holds_media(value[0])
    if isinstance(value, bytes):
        return value.startswith(PICTURES)
    return isinstance(value, Mapping) and {"bytes", "path"} <= set(value) and bool(value["bytes"] or value["path"])
