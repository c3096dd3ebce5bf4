"""A copy of a corpus whose rows have their counts written into them, in the columns that `estimate` reads.

_text_tokens     tokens that belong to no medium, the chat template's own among them
_media_tokens    tokens of all media
mm_inputs_meta   {"images_meta": [[height, width], …], "videos_meta": [[frames, height, width, fps, duration], …]}
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from lading import media
from lading.cache import replacing
from lading.conversation import Layout
from lading.errors import ConfigError, SkipSample
from lading.progress import task
from lading.records import COLUMNS, ImageSize, Length, LengthTable, Size, VideoSize
from lading.samples.samples import Samples
from lading.sources.corpus import Corpus, Source
from lading.sources.meta import SourceConfig, file_names, media_places


def annotated(row: Mapping[str, Any], length: Length, sizes: Sequence[Size]) -> dict[str, Any]:
    """The row with what it costs; `sizes` are those of its media, in reading order.

    >>> length = Length(tokens=20, label_tokens=4, visual_tokens=6, images=1)
    >>> annotated({"id": 7}, length, [ImageSize(height=56, width=84)])
    {'id': 7, '_text_tokens': 14, '_media_tokens': 6,
     'mm_inputs_meta': {'images_meta': [[56, 84]], 'videos_meta': []}}
    """
    media = length.visual_tokens + length.audio_tokens
    return {
        **row,
        "_text_tokens": length.tokens - media,
        "_media_tokens": media,
        "mm_inputs_meta": {
            "images_meta": [[size.height, size.width] for size in sizes if isinstance(size, ImageSize)],
            "videos_meta": [_clip(size) for size in sizes if isinstance(size, VideoSize)],
        },
    }


def _clip(size: VideoSize) -> list[float]:
    return [size.frames, size.height, size.width, size.fps, size.frames / size.fps if size.fps else 0.0]


META = "meta.json"

_numbers = attrgetter(*COLUMNS)


def write_annotated(samples: Samples, table: LengthTable, folder: Path) -> Path:
    """Write a JSONL file for each source, and the meta file that reads them; its path.

    The copy holds the samples themselves, in their order: a source's share of its rows, not all of them. One that was
    not counted (dropped) is copied as it is; one that is no JSON object cannot be, and is left out. The files take
    their places together, at the end: half a copy would be taken for one.
    """
    corpus = samples.corpus
    names = file_names([f"{source.config.name or 'rows'}.jsonl" for source in corpus.sources], taken=[META])
    _refuse_own_files(corpus, {(folder / name).resolve() for name in names})
    meta: dict[str, Any] = {}
    with ExitStack() as places:
        # What is begun first takes its place last, when all that it names is there.
        new_meta = places.enter_context(replacing(folder / META))
        for source, layout, end, name in zip(corpus.sources, samples.layouts, corpus.ends, names, strict=True):
            with task(f"writing {name}", len(source)) as advance:
                file = places.enter_context(replacing(folder / name))
                for line in _lines(samples, source, table, end - len(source)):
                    file.write(line)
                    advance(1)
                # There may be more sources than files that can be open.
                file.close()
            meta[source.config.name] = _entry(source.config, layout, name, folder)
        new_meta.write((json.dumps(meta, indent=2) + "\n").encode())
    return folder / META


def _refuse_own_files(corpus: Corpus, copies: set[Path]) -> None:
    for source in corpus.sources:
        if not source.config.hub and source.config.file.resolve() in copies:
            found = f"a copy that would take the place of {source.config.file}"
            raise ConfigError(found=found, wanted="a folder of its own", consequence="nothing was written")


def _entry(config: SourceConfig, layout: Layout, name: str, folder: Path) -> dict[str, Any]:
    # No share is named: the copy is the share, and a share of it would be another.
    read = {"columns": dict(config.columns), "tags": dict(config.tags), "format": layout.format}
    return {"file_name": name, **read, **media_places(config, folder)}


def _no_json(where: str, value: object) -> Any:
    raise ConfigError(
        found=f"{type(value).__name__} in a row",
        wanted="media by their paths",
        consequence="the copy is JSONL, which cannot hold it; nothing was written",
        where=where,
    )


def _lines(samples: Samples, source: Source, table: LengthTable, first: int) -> Iterator[bytes]:
    """A line for each sample of a source; those that were counted have their counts. What cannot be read has none."""
    for position in range(len(source)):
        number, index = source.row_number(position), first + position
        try:
            row = source.file.read(number)
        except SkipSample:
            yield b""
            continue
        if table.tokens[index]:
            numbers = zip(COLUMNS, _numbers(table), strict=True)
            length = Length(**{name: int(column[index]) for name, column in numbers})
            shown = length.images or length.videos or length.audios
            sizes = [media.measure(part) for part in samples.conversation(index).media] if shown else []
            row = annotated(row, length, sizes)
        yield (json.dumps(row, default=partial(_no_json, source.file.where(number))) + "\n").encode()
