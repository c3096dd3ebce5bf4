"""A corpus: data sets one after the other, every sample with one number for good."""

from __future__ import annotations

import bisect
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from lading.addresses import how_to_read_hub, may_be_hub_id, refuse_address
from lading.cache import Cache
from lading.errors import ConfigError, CorpusError, UnknownName
from lading.records import Row, SampleKey
from lading.sources.files import make_room, refuse_locked
from lading.sources.hub import open_hub
from lading.sources.json_array import JsonArrayFile, begins_array, load_json
from lading.sources.jsonl import JsonlFile
from lading.sources.meta import MOST_OFTEN, SourceConfig, read_meta
from lading.sources.parquet import ParquetFile

logger = logging.getLogger(__name__)

RATIO_SEED = 42
"""A ratio below one keeps the same samples on every rank and in every run."""

KINDS: Mapping[str, type[JsonlFile] | type[JsonArrayFile] | type[ParquetFile]] = {
    ".jsonl": JsonlFile,
    ".json": JsonArrayFile,
    ".parquet": ParquetFile,
}
"""How a file is read, by the end of its name."""
WANTED = f"one ending in {' or '.join(KINDS)}, or the folder of a data set"


class RowFile(Protocol):
    """A file of rows, by number."""

    def __len__(self) -> int: ...

    def where(self, number: int) -> str: ...  # how to name a row in a message

    def read(self, number: int) -> Mapping[str, Any]:
        """One row's value, or `SkipSample`."""
        ...

    def fingerprint(self, *, timed: bool = True) -> str:
        """What tells one state of it from another; where its time of change is needed for that, only if `timed`."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """One data set: its configuration, its file, and which of its rows are used."""

    config: SourceConfig
    file: RowFile
    chosen: NDArray[np.int64] | None = None
    """Row numbers in order; `None` for all of them, once."""

    def __len__(self) -> int:
        return len(self.file) if self.chosen is None else len(self.chosen)

    def row_number(self, position: int) -> int:
        return position if self.chosen is None else int(self.chosen[position])


@dataclass(frozen=True, kw_only=True, slots=True)
class Corpus:
    """Sources in a row. `corpus.row(i)` is sample i, on every rank and in every run."""

    sources: tuple[Source, ...]
    ends: tuple[int, ...]
    """One past the last sample of each source."""

    @classmethod
    def of(cls, sources: Sequence[Source]) -> Corpus:
        return cls(sources=tuple(sources), ends=tuple(accumulate(len(source) for source in sources)))

    def __len__(self) -> int:
        return self.ends[-1] if self.ends else 0

    def __repr__(self) -> str:
        inside = ", ".join(f"{source.config.name}: {len(source)}" for source in self.sources)
        return f"Corpus({inside})"

    def locate(self, index: int) -> tuple[int, int]:
        """(source number, row number) of a sample."""
        number = bisect.bisect_right(self.ends, index)
        if index < 0 or number == len(self.ends):
            raise IndexError(f"sample {index} of {len(self)}")
        return number, self.sources[number].row_number(index - (self.ends[number - 1] if number else 0))

    def key(self, index: int) -> SampleKey:
        """The name of a sample, without reading it."""
        number, row = self.locate(index)
        source = self.sources[number]
        return SampleKey(index=index, source=source.config.name, where=source.file.where(row))

    def row(self, index: int) -> Row:
        """Read one sample; `SkipSample` when its row cannot be parsed."""
        return self.named(self.key(index))

    def named(self, key: SampleKey) -> Row:
        """Read the sample of a key that is known already."""
        number, row = self.locate(key.index)
        return Row(key=key, value=self.sources[number].file.read(row))

    def config(self, index: int) -> SourceConfig:
        """How the source of a sample is read."""
        return self.sources[self.locate(index)[0]].config


def open_corpus(
    path: Any,
    dataset_names: Sequence[str] | None = None,
    *,
    cache: Cache = True,
    format: str | None = None,  # noqa: A002 - what users call it
    media_dir: str | Path | None = None,
    media_roots: Sequence[str | Path] | None = None,
) -> Corpus:
    """Open a meta file, a JSON array, a JSONL or a Parquet file, the folder of a data set, or an open `Dataset`.

    Rows are not read yet. Where the rows of a large file begin is found once and kept: beside it, in the folder `cache`
    names, or nowhere. `format`, `media_dir` and `media_roots` (folders below which media must lie) hold for every
    source, whatever a meta file says. Paths are absolute from here on, wherever the process goes later.

    >>> open_corpus("/nowhere.jsonl")
    Traceback (most recent call last):
        ...
    lading.errors.CorpusError: found no file /nowhere.jsonl; wanted a JSONL file; nothing was read
    """
    if not isinstance(path, (str, Path)):
        rows = open_hub(path)
        # It is open: its name is no file's.
        config = SourceConfig(name="dataset", file=Path(rows.name), hub=True)
        return Corpus.of([Source(config=_settled(config, format, media_dir, media_roots), file=rows)])
    configs = source_configs(path, dataset_names, format=format, media_dir=media_dir, media_roots=media_roots)
    make_room(config.file for config in configs)
    return Corpus.of([open_source(config, cache=cache) for config in configs])


def source_configs(
    path: str | Path,
    dataset_names: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    media_dir: str | Path | None = None,
    media_roots: Sequence[str | Path] | None = None,
) -> tuple[SourceConfig, ...]:
    """The data sets that a path stands for: those a meta file lists, or the one that it is. None is opened."""
    refuse_what_is_no_path(path)
    path = Path(path)
    refuse_locked(path)
    # Of an empty file nobody knows what it was to be: whoever opens it says that it is empty.
    may_be_meta = path.suffix == ".json" and path.is_file() and path.stat().st_size > 0 and not begins_array(path)
    if may_be_meta and isinstance(load_json(path), dict):
        configs = read_meta(path, dataset_names)
    else:
        for name in dataset_names or ():
            if name != path.stem:
                raise UnknownName(kind="data set", name=name, known=(path.stem,), where=str(path))
        configs = (SourceConfig(name=path.stem, file=path, media_dir=path if path.is_dir() else path.parent),)
    return tuple(_settled(config, format, media_dir, media_roots) for config in configs)


def refuse_what_is_no_path(path: str | Path) -> None:
    """Refuse an address, or the id of a data set on the hub, where the path of a corpus belongs.

    >>> refuse_what_is_no_path("somebody/scans")
    Traceback (most recent call last):
        ...
    lading.errors.CorpusError: found no file or folder somebody/scans; wanted …; if it is a data set of the hub, …
    """
    refuse_address(path, wanted="a corpus")
    named = Path(path)
    if named.suffix not in KINDS and may_be_hub_id(path) and not named.exists():
        raise CorpusError(
            found=f"no file or folder {path}",
            wanted=WANTED,
            consequence=f"if it is a data set of the Hugging Face hub: {how_to_read_hub(str(path))}",
        )


def _settled(
    config: SourceConfig,
    name: str | None,
    media_dir: str | Path | None,
    media_roots: Sequence[str | Path] | None,
) -> SourceConfig:
    """A source's configuration with what the caller says in place of what the meta file does, and absolute paths."""
    if media_dir is not None:
        refuse_address(media_dir, wanted="a folder of media")
    folder = config.media_dir if media_dir is None else Path(media_dir)
    roots = config.media_roots if media_roots is None else _folders(media_roots)
    return replace(
        config,
        format=name or config.format,
        file=config.file if config.hub else config.file.absolute(),
        media_dir=None if folder is None else folder.absolute(),
        opened_in=Path.cwd() if folder is None else None,
        media_roots=tuple(root.absolute() for root in roots),
    )


def _folders(given: object) -> tuple[Path, ...]:
    """Media roots as the caller gave them. One name alone would fall into its letters, `/` among them; none at all
    would confine nothing, and lift what a meta file says.
    """
    folders = list(given) if isinstance(given, Iterable) and not isinstance(given, (str, bytes, Path)) else []
    if not folders or not all(isinstance(folder, (str, Path)) and str(folder) for folder in folders):
        raise ConfigError(
            found=f"{given!r} as media_roots",
            wanted='a list of folders (media_roots=["pictures"]), or None where media may lie anywhere',
            consequence="nothing was read",
        )
    for folder in folders:
        refuse_address(folder, wanted="a folder of media")
    return tuple(map(Path, folders))


def open_source(config: SourceConfig, *, cache: Cache = True) -> Source:
    """Open one data set."""
    if not config.hub:
        refuse_locked(config.file)
    file: RowFile
    if config.hub or config.file.is_dir():
        asked = {"name": config.subset, "data_dir": config.folder}
        options = {name: value for name, value in asked.items() if value is not None}
        file = open_hub(str(config.file), config.split, options=options)
    elif config.file.suffix in KINDS:
        file = KINDS[config.file.suffix](config.file, cache=cache)
    elif config.file.suffix or config.file.exists():
        raise ConfigError(found=f"a file named {config.file.name}", wanted=WANTED)
    else:
        raise CorpusError(found=f"no file or folder {config.file}", wanted=WANTED, consequence="nothing was read")
    rows = max(1, len(file))
    if config.num_samples is not None and config.num_samples > MOST_OFTEN * rows:
        raise ConfigError(
            found=f"num_samples {config.num_samples:,} of {len(file):,} rows",
            wanted=f"at most {MOST_OFTEN * len(file):,}, each row {MOST_OFTEN:,} times",
            consequence="nothing was read",
            where=config.name,
        )
    ratio = config.sample_ratio if config.num_samples is None else config.num_samples / rows
    source = Source(config=config, file=file, chosen=choose(len(file), ratio))
    if ratio and len(file) and not len(source):
        logger.warning("%s: a share of %g of its %d rows is none of them", config.name, ratio, len(file))
    return source


def choose(rows: int, ratio: float) -> NDArray[np.int64] | None:
    """Row numbers for a sample ratio: whole repeats first, then a fixed random share.

    >>> choose(4, 1.0) is None, choose(4, 2.5).tolist()[:8]
    (True, [0, 1, 2, 3, 0, 1, 2, 3])
    """
    if ratio == 1.0:
        return None
    whole, part = divmod(round(rows * ratio), rows) if rows else (0, 0)
    share = random.Random(RATIO_SEED).sample(range(rows), part)
    return np.concatenate([np.tile(np.arange(rows, dtype=np.int64), whole), np.array(share, dtype=np.int64)])
