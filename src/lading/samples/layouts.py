"""How the rows of each source of a corpus are read: as its configuration says, or as some of its rows show.

The first rows are looked at. Where they are messages of text alone, which could be of any variety, further ones are:
spread evenly over the file, a few at a time, until one tells. The same file, the same rows, in every process.
"""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import Any

from lading.conversation import Layout, Recognised, find_format, read_conversation, recognise
from lading.conversation.keys import Reading
from lading.conversation.prompt_completion import answers_in_prompt
from lading.conversation.recognise import ROWS, speaks, unread_media
from lading.errors import ConfigError, SkipSample
from lading.media.opening import files_of, lies_below
from lading.records import Conversation, Row, SampleKey
from lading.sources import Corpus, SourceConfig
from lading.sources.corpus import Source

logger = logging.getLogger(__name__)

AS_USUAL = Reading()
ROUNDS = 10
"""How often as many rows again are looked at, while none tells the format."""


def source_layouts(corpus: Corpus, reading: Reading = AS_USUAL) -> tuple[Layout, ...]:
    """The layout of every source, in their order. What was recognised is said through `logging`."""
    layouts = tuple(source_layout(source, reading) for source in corpus.sources)
    for source, layout in zip(corpus.sources, layouts, strict=True):
        _refuse_wholly_outside(source, layout)
    return layouts


def stated_layout(config: SourceConfig, reading: Reading = AS_USUAL) -> Layout:
    """What a source's configuration says of its rows."""
    return Layout(
        columns=config.columns,
        tags=config.tags,
        media_dir=config.media_dir,
        opened_in=config.opened_in,
        media_roots=tuple(map(str, config.media_roots)),
        format=config.format,
        reading=reading,
    )


def source_layout(source: Source, reading: Reading = AS_USUAL) -> Layout:
    """The layout of one source."""
    config = source.config
    layout = stated_layout(config, reading)
    if layout.format is not None:
        own = find_format(layout.format, where=config.name)
        logger.info("%s: read as %s (%s), as was asked", config.name, own.name, own.title)
        _warn_of_unread(source, _readable(source, range(min(ROWS, len(source.file)))), layout)
        _refuse_disobeyed(source, layout)
        return layout
    rows = _readable(source, range(min(ROWS, len(source.file)))) or _further(source, layout)
    if not rows:
        # There is nothing to look at: no rows, or none that can be read, and each of those is dropped by name.
        return layout
    where = f"{config.name}: {config.file}"
    found = recognise(rows, layout, where)
    if not found.certain:
        rows += _further(source, layout)
        found = recognise(rows, layout, where)
    _say(config.name, found)
    chosen = replace(layout, format=found.format.name)
    if found.format.name == "prompt_completion" and any(answers_in_prompt(row, chosen) for row in rows):
        logger.warning("%s: an assistant speaks in prompts; what it says there is trained on, too", config.name)
    _warn_of_unread(source, rows, chosen)
    _refuse_disobeyed(source, chosen)
    return chosen


def _refuse_disobeyed(source: Source, layout: Layout) -> None:
    """Read some rows, so that one which says how to train, and is not obeyed, ends the run before it begins."""
    for numbers in (range(min(ROWS, len(source.file))), *spread(len(source.file), rounds=1)):
        for number in numbers:
            _conversation(source, layout, number)


def _further(source: Source, layout: Layout) -> list[Mapping[str, Any]]:
    """Rows behind the first ones, up to those among which one tells its format."""
    rows: list[Mapping[str, Any]] = []
    # A row of a Parquet file costs the whole group it stands in; and all its rows have the same columns.
    rounds = 1 if source.config.file.suffix == ".parquet" else ROUNDS
    for numbers in spread(len(source.file), rounds=rounds):
        more = _readable(source, numbers)
        rows += more
        if any(speaks(row, layout) for row in more):
            break
    return rows


def spread(total: int, first: int = ROWS, rounds: int = ROUNDS) -> Iterator[list[int]]:
    """Numbers of rows behind the first ones: in each round as many again, evenly over all the rest, and other ones.

    >>> list(spread(12, first=3, rounds=2))
    [[3, 6, 9], [4, 7, 10]]
    >>> list(spread(6, first=3, rounds=2))
    [[3, 4, 5]]
    """
    left = max(0, total - first)
    count = min(left, first * rounds)
    places = [first + place * left // count for place in range(count)]
    needed = -(-count // first)
    yield from (places[start::needed] for start in range(needed))


def _readable(source: Source, numbers: Iterable[int]) -> list[Mapping[str, Any]]:
    """These rows of a file, without those that cannot be read."""
    rows = []
    for number in numbers:
        try:
            rows.append(source.file.read(number))
        except SkipSample:
            continue
    return rows


def _refuse_wholly_outside(source: Source, layout: Layout) -> None:
    """Refuse a source of which every medium that is looked at lies outside the roots: they are other ones, then."""
    outside: list[str] = []
    numbers = chain(range(min(ROWS, len(source.file))), *spread(len(source.file))) if layout.media_roots else ()
    for number in numbers:
        for path in _media_files(source, layout, number):
            if lies_below(path, layout.media_roots):
                return
            outside.append(path)
    if outside:
        folder = os.path.dirname(os.path.realpath(outside[0]))
        raise ConfigError(
            found=f"{outside[0]} and all other media that were looked at ({len(outside):,}) outside the media roots",
            wanted=f"media below {' or '.join(layout.media_roots)}",
            consequence="nothing was counted; if they may be read, add their folder: "
            f"--media-root {shlex.quote(folder)} (media_roots=[{folder!r}])",
            where=source.config.name,
        )


def _media_files(source: Source, layout: Layout, number: int) -> list[str]:
    """The files that a row's media are; none where the row cannot be used."""
    conversation = _conversation(source, layout, number)
    return [path for part in conversation.media for path in files_of(part)] if conversation else []


def _conversation(source: Source, layout: Layout, number: int) -> Conversation | None:
    """What a row says; nothing where it cannot be used."""
    key = SampleKey(index=number, source=source.config.name, where=source.file.where(number))
    try:
        return read_conversation(Row(key=key, value=source.file.read(number)), layout)
    except SkipSample:
        return None


def _warn_of_unread(source: Source, rows: list[Mapping[str, Any]], layout: Layout) -> None:
    column = unread_media(rows, layout)
    if column is not None:
        _warn_of_column(source.config.name, column, source.file.fingerprint())


@lru_cache
def _warn_of_column(name: str, column: str, fingerprint: str) -> None:
    """Said once of a file: a command may open the samples of a corpus several times."""
    del fingerprint
    logger.warning(
        "%s: column %s holds pictures that nobody reads; `columns: {images: %s}` in a meta file says so"
        " (`videos` and `audios` for clips and sounds)",
        name,
        column,
        column,
    )


def _say(name: str, found: Recognised) -> None:
    said = f"{found.fitting} of the {'first ' if found.looked <= ROWS else ''}{found.looked} rows"
    said += "" if found.looked <= ROWS else " that were looked at"
    logger.info("%s: read as %s (%s), by %s", name, found.format.name, found.format.title, said)
    if found.also:
        logger.warning(
            "%s: %s could be %s as well as %s; read as the first (`format` chooses another)",
            name,
            said,
            found.format.name,
            " or ".join(found.also),
        )
