"""How the rows of each source of a corpus are read: as its configuration says, or as its first rows show."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from lading.conversation import Layout, Recognised, find_format, recognise
from lading.conversation.prompt_completion import answers_in_prompt
from lading.conversation.recognise import ROWS
from lading.errors import SkipSample
from lading.sources import Corpus
from lading.sources.corpus import Source

logger = logging.getLogger(__name__)


def source_layouts(corpus: Corpus) -> tuple[Layout, ...]:
    """The layout of every source, in their order. What was recognised is said through `logging`."""
    return tuple(source_layout(source) for source in corpus.sources)


def source_layout(source: Source) -> Layout:
    """The layout of one source."""
    config = source.config
    layout = Layout(columns=config.columns, tags=config.tags, media_dir=config.media_dir, format=config.format)
    if layout.format is not None:
        own = find_format(layout.format, where=config.name)
        logger.info("%s: read as %s (%s), as was asked", config.name, own.name, own.title)
        return layout
    rows = list(islice(_readable(source), ROWS))
    if not rows:
        # There is nothing to look at: no rows, or none that can be read, and each of those is dropped by name.
        return layout
    found = recognise(rows, layout, where=f"{config.name}: {config.file}")
    _say(config.name, found)
    chosen = replace(layout, format=found.format.name)
    if found.format.name == "prompt_completion" and any(answers_in_prompt(row, chosen) for row in rows):
        logger.warning("%s: an assistant speaks in prompts; what it says there is trained on, too", config.name)
    return chosen


def _readable(source: Source) -> Iterator[Mapping[str, Any]]:
    """The first rows of a file, without those that cannot be read."""
    for number in range(min(ROWS, len(source.file))):
        try:
            yield source.file.read(number)
        except SkipSample:
            continue


def _say(name: str, found: Recognised) -> None:
    said = f"{found.fitting} of the first {found.looked} rows"
    logger.info("%s: read as %s (%s), by %s", name, found.format.name, found.format.title, said)
    if found.also:
        logger.warning(
            "%s: %s could be %s as well as %s; read as the first (`format` chooses another)",
            name,
            said,
            found.format.name,
            " or ".join(found.also),
        )
