"""A corpus whose broken files are findings, and whose rows are all looked at, whatever share of them is used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lading.doctor.kinds import KINDS
from lading.errors import CorpusError
from lading.records import Finding, SampleKey
from lading.sources import Corpus, open_corpus
from lading.sources.corpus import Source
from lading.sources.elements import begins_array
from lading.sources.meta import SourceConfig, read_meta

Positions = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Patient:
    """A corpus as the doctor sees it."""

    meta: Path
    corpus: Corpus
    """As it is trained on, less what cannot be opened."""
    rows: Corpus
    """Every row once, in the order of the files."""
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


def open_patient(meta: Path) -> Patient:
    """Open a corpus, file by file. That the meta file itself cannot be read is not forgiven."""
    sources: list[Source] = []
    findings: list[Finding] = []
    lost: list[str] = []
    for config in _configs(meta):
        opened = _opened(meta, config)
        if isinstance(opened, Finding):
            findings.append(opened)
            lost.append(config.name)
        else:
            sources.append(opened)
    return replace(patient_of(meta, Corpus.of(sources)), findings=tuple(findings), lost_sources=tuple(lost))


def patient_of(meta: Path, corpus: Corpus) -> Patient:
    """A corpus that was opened already: all of its files can be read."""
    return Patient(
        meta=meta,
        corpus=corpus,
        rows=Corpus.of([replace(source, chosen=None) for source in corpus.sources]),
        findings=(),
        lost_sources=(),
        used=tuple(None if own.chosen is None else np.unique(own.chosen, return_index=True) for own in corpus.sources),
    )


def _configs(meta: Path) -> tuple[SourceConfig, ...]:
    if is_meta(meta):
        return read_meta(meta)
    if not meta.exists():
        raise CorpusError(found=f"no file {meta}", wanted="a meta file or a data file", consequence="nothing was read")
    return (SourceConfig(name=meta.stem, file=meta, media_dir=meta.parent),)


def is_meta(path: Path) -> bool:
    """Whether a file lists data sets, and is not one itself."""
    empty = path.is_file() and not path.stat().st_size
    return path.suffix == ".json" and path.is_file() and not empty and not begins_array(path)


def _opened(meta: Path, config: SourceConfig) -> Source | Finding:
    try:
        source = open_corpus(meta, [config.name] if is_meta(meta) else None).sources[0]
        rows = len(source.file)
    except CorpusError as error:
        return _broken(config.file, error)
    return source if rows else _finding("empty_file", config.file, "no rows")


def _broken(file: Path, error: CorpusError) -> Finding:
    if not file.exists():
        return _finding("missing_file", file, "no such file")
    if file.is_file() and not file.stat().st_size:
        return _finding("empty_file", file, "0 bytes")
    return _finding("unreadable_file", file, error.found + (f" [{error.where}]" if error.where else ""))


def _finding(kind: str, file: Path, detail: str) -> Finding:
    return Finding(kind=kind, severity=KINDS[kind].severity, where=str(file), detail=detail)
