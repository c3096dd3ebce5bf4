"""A corpus whose broken files are findings, and whose rows are all examined, whatever share of them is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout
from lading.doctor.kinds import KINDS
from lading.doctor.reading import forgiving_layout
from lading.errors import CorpusError, LadingError
from lading.records import Finding, SampleKey
from lading.sources import Corpus, SourceConfig, open_source, source_configs
from lading.sources.corpus import Source, refuse_what_is_no_path
from lading.sources.files import is_locked, make_room, refuse_locked

Positions = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class ExaminedCorpus:
    """A corpus as the doctor sees it."""

    meta: Path
    corpus: Corpus
    """As it is trained on, less what cannot be opened."""
    rows: Corpus
    """Every row once, in the order of the files."""
    layouts: tuple[Layout, ...]
    """How the rows of each source are read: found out once, for all processes."""
    findings: tuple[Finding, ...]
    """What is wrong with files as a whole."""
    lost_sources: tuple[str, ...]

    used: tuple[tuple[Positions, Positions] | None, ...]
    """For each source of which a share is used: its rows, ascending, and where each is first. `None`: all, in order."""

    def __len__(self) -> int:
        return len(self.rows)

    def key(self, row: int) -> SampleKey | None:
        """The sample that a row of `rows` is (the first, if it is used more than once); `None` if it is not used."""
        number, place = self.rows.locate(row)
        if (used := self.used[number]) is not None:
            known, places = used
            found = int(np.searchsorted(known, place))
            if found == len(known) or known[found] != place:
                return None
            place = int(places[found])
        return self.corpus.key(self.corpus.ends[number] - len(self.corpus.sources[number]) + place)


def open_for_examination(
    meta: str | Path,
    dataset_names: Sequence[str] | None = None,
    *,
    format: str | None = None,  # noqa: A002 - what users call it
    media_dir: str | Path | None = None,
    media_roots: Sequence[str | Path] | None = None,
) -> ExaminedCorpus:
    """Open a corpus, file by file. That a meta file asks for what there is not (names, options) is not forgiven."""
    refuse_what_is_no_path(meta)
    meta = Path(meta)
    refuse_locked(meta)
    if not meta.exists():
        raise CorpusError(found=f"no file {meta}", wanted="a meta file or a data file", consequence="nothing was read")
    sources: list[Source] = []
    findings: list[Finding] = []
    lost: list[str] = []
    try:
        configs = source_configs(meta, dataset_names, format=format, media_dir=media_dir, media_roots=media_roots)
    except CorpusError as error:
        # Neither a list of data sets nor rows: whichever it was to be, it is one file that cannot be read.
        broken = SourceConfig(name=meta.stem, file=meta)
        configs, findings, lost = (), [_broken(broken, error)], [broken.name]
    make_room(config.file for config in configs)
    for config in configs:
        opened = _opened(config)
        if isinstance(opened, Finding):
            findings.append(opened)
            lost.append(config.name)
        else:
            sources.append(opened)
    examined = examined_corpus(meta, Corpus.of(sources))
    return replace(examined, findings=(*findings, *examined.findings), lost_sources=tuple(lost))


def examined_corpus(meta: Path, corpus: Corpus, layouts: tuple[Layout, ...] = ()) -> ExaminedCorpus:
    """A corpus that was opened already: all of its files can be read. Without `layouts`, they are found out."""
    findings: list[Finding] = []
    if not layouts:
        found = [forgiving_layout(source) for source in corpus.sources]
        layouts = tuple(layout for layout, _ in found)
        for source, (_, error) in zip(corpus.sources, found, strict=True):
            if error is not None:
                findings.append(_finding("unknown_format", source.config, _described(error)))
    return ExaminedCorpus(
        meta=meta,
        corpus=corpus,
        rows=Corpus.of([replace(source, chosen=None) for source in corpus.sources]),
        layouts=layouts,
        findings=tuple(findings),
        lost_sources=(),
        used=tuple(None if own.chosen is None else np.unique(own.chosen, return_index=True) for own in corpus.sources),
    )


def _opened(config: SourceConfig) -> Source | Finding:
    try:
        source = open_source(config)
        rows = len(source.file)
    except CorpusError as error:
        return _broken(config, error)
    return source if rows else _finding("empty_file", config, "no rows")


def _broken(config: SourceConfig, error: CorpusError) -> Finding:
    # Of a data set of the hub, which is no file here, and of a path that nobody may look at, the error says all.
    if not config.hub and not is_locked(config.file):
        if not config.file.exists():
            return _finding("missing_file", config, "no such file")
        if config.file.is_file() and not config.file.stat().st_size:
            return _finding("empty_file", config, "0 bytes")
    return _finding("unreadable_file", config, _described(error) + (f" [{error.where}]" if error.where else ""))


def _described(error: LadingError) -> str:
    return f"{error.found}; wanted {error.wanted}" if error.wanted else error.found


def _finding(kind: str, config: SourceConfig, detail: str) -> Finding:
    severity = KINDS[kind].severity
    return Finding(kind=kind, severity=severity, where=str(config.file), detail=detail, source=config.name)
