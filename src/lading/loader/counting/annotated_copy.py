"""A copy of a corpus whose rows carry their exact counts, for whoever plans by what stands in a row."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from lading import media
from lading.errors import ConfigError, SkipSample
from lading.lengths.annotate import annotated
from lading.loader.samples import Samples
from lading.progress import task
from lading.records import COLUMNS, Length, LengthTable
from lading.sources.corpus import Source

META = "meta.json"

_numbers = attrgetter(*COLUMNS)


def write_annotated(samples: Samples, table: LengthTable, folder: Path) -> Path:
    """Write a JSONL file for each source, and the meta file that reads them; its path.

    A row that was not counted (dropped, or not in the source's share) is copied as it is; one that is no JSON object
    cannot be, and is left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    meta: dict[str, Any] = {}
    corpus = samples.corpus
    for source, layout, end in zip(corpus.sources, samples.layouts, corpus.ends, strict=True):
        config, path = source.config, folder / f"{source.config.name}.jsonl"
        if path.exists() and path.samefile(config.file):
            raise ConfigError(found=f"a copy that would take the place of {path}", wanted="a folder of its own")
        try:
            _write(path, samples, source, table, end - len(source))
        except ConfigError:
            path.unlink()  # half a copy would be taken for one
            raise
        # Paths without a folder are seen from where the program is started, and the copy's are no others.
        where = {"media_dir": os.path.relpath(config.media_dir, folder)} if config.media_dir is not None else {}
        meta[config.name] = {
            "file_name": path.name,
            "columns": dict(config.columns),
            "tags": dict(config.tags),
            "format": layout.format,
            "sample_ratio": config.sample_ratio,
            "num_samples": config.num_samples,
            **where,
        }
    (folder / META).write_text(json.dumps(meta, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return folder / META


def _write(path: Path, samples: Samples, source: Source, table: LengthTable, first: int) -> None:
    what = f"writing {path.name}"
    with path.open("w", encoding="utf-8") as file, task(what, len(source.file)) as advance:
        for where, row in _rows(samples, source, table, first):
            file.write(json.dumps(row, ensure_ascii=False, default=partial(_no_json, where)) + "\n")
            advance(1)


def _no_json(where: str, value: object) -> Any:
    raise ConfigError(
        found=f"{type(value).__name__} in a row",
        wanted="media by their paths",
        consequence="the copy is JSONL, which cannot hold it; nothing was written",
        where=where,
    )


def _rows(samples: Samples, source: Source, table: LengthTable, first: int) -> Iterator[tuple[str, Any]]:
    """The rows of a source in their order, with their places; those that were counted with their counts."""
    used = np.arange(len(source), dtype=np.int64) if source.chosen is None else source.chosen
    places = dict(zip(used.tolist(), range(first, first + len(used)), strict=True))
    for number in range(len(source.file)):
        try:
            row = source.file.read(number)
        except SkipSample:
            continue
        index, where = places.get(number), source.file.where(number)
        if index is None or not table.tokens[index]:
            yield where, row
            continue
        length = Length(**{name: int(column[index]) for name, column in zip(COLUMNS, _numbers(table), strict=True)})
        shown = length.images or length.videos or length.audios
        sizes = [media.measure(part) for part in samples.conversation(index).media] if shown else []
        yield where, annotated(row, length, sizes)
