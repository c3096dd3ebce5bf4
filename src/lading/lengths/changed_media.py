"""A few media files of a source, remembered by their size in bytes.

Lengths depend on the media's sizes, and to look at every file again would cost as much as counting. Pictures that were
made smaller, or drawn anew, are mostly changed all at once: so a few, spread evenly, are looked at. What slips through
is named when it is opened: `Samples.encode` compares with what was counted.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from lading.conversation import Layout, read_conversation
from lading.errors import SkipSample
from lading.lengths.rows import Counted
from lading.records import Row, SampleKey
from lading.sources.corpus import Source

WITNESSES = 64
"""Rows of a source whose media are remembered."""


def remember(source: Source, layout: Layout, counted: Counted) -> dict[str, list[int]]:
    """The sizes of the media of a few rows, by row."""
    records = counted.records
    shown = records["row"][(records["images"] > 0) | (records["videos"] > 0) | (records["audios"] > 0)]
    if not len(shown):
        return {}
    chosen = np.unique(np.linspace(0, len(shown) - 1, WITNESSES).round().astype(int))
    return {str(row): _media_bytes(source, layout, row) for row in shown[chosen].tolist()}


def unchanged(source: Source, layout: Layout, remembered: Mapping[str, list[int]]) -> bool:
    """Whether those media are of the same sizes still."""
    return all(_media_bytes(source, layout, int(row)) == sizes for row, sizes in remembered.items())


def _media_bytes(source: Source, layout: Layout, row: int) -> list[int]:
    key = SampleKey(index=row, source=source.config.name, where=source.file.where(row))
    try:
        conversation = read_conversation(Row(key=key, value=source.file.read(row)), layout)
    except SkipSample:
        return []
    references = [part.reference for part in conversation.media]
    files = [path for own in references for path in (own if isinstance(own, tuple) else (own,))]
    return [_bytes(path) for path in files if isinstance(path, (str, Path))]


def _bytes(path: str | Path) -> int:
    try:
        return os.stat(path).st_size
    except (OSError, ValueError):
        return -1
