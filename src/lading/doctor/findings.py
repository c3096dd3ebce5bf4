"""What an examination found, and how it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.doctor.kinds import KINDS, NUMBERS, mask
from lading.doctor.opening import ExaminedCorpus
from lading.records import Finding
from lading.records.samples import Severity
from lading.sources import Corpus

KEPT = 10_000
"""Findings of one kind that are kept by name; beyond these they are only counted."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Findings:
    """Everything that was found in a corpus.

    Law: `counts` and `marks` are complete; `findings` holds the first `KEPT` of each kind, in the order of the corpus.
    """

    meta: Path
    examined: ExaminedCorpus
    """The corpus as it was opened."""
    findings: tuple[Finding, ...]
    counts: Mapping[str, int]
    """How often each kind was found, in the order of `KINDS`; a kind that was not found is not in it."""
    marks: Mapping[str, NDArray[np.uint64]]
    """For each data set, a mask of the kinds (`kinds.NUMBERS`) found in each row of its file."""
    samples: int
    media: int
    processor: str | None = None
    pack_size: int | None = None
    deep: bool = False
    seconds: float = 0.0
    lost_sources: tuple[str, ...] = field(default=())
    """Data sets whose file cannot be read, or has no rows."""

    def count(self, severity: Severity) -> int:
        """How many errors, warnings or notices there are."""
        return sum(count for kind, count in self.counts.items() if KINDS[kind].severity == severity)

    def fails(self, *, strict: bool = False) -> bool:
        """Whether there are errors; with `strict`, whether there are warnings, too."""
        return any(self.count(severity) for severity in left_out_for(strict=strict))

    def left_out(self, source: str, *, strict: bool = False) -> NDArray[np.bool_]:
        """Which rows of a data set have errors; with `strict`, which have warnings, too."""
        bits = sum(mask(severity) for severity in left_out_for(strict=strict))
        chosen: NDArray[np.bool_] = (self.marks[source] & np.uint64(bits)) != 0
        return chosen

    def kinds_of(self, source: str, row: int) -> list[str]:
        """The kinds found in a row."""
        marks = int(self.marks[source][row])
        return [kind for kind, number in NUMBERS.items() if marks >> number & 1]

    def by_row(self) -> dict[tuple[str, int], list[Finding]]:
        """Findings by data set and row of its file; those about whole files are not among them."""
        rows: dict[tuple[str, int], list[Finding]] = {}
        for finding in self.findings:
            if finding.row is not None:
                rows.setdefault((finding.source, finding.row), []).append(finding)
        return rows

    def by_sample(self, corpus: Corpus | None = None) -> dict[int, list[Finding]]:
        """Findings by sample of the corpus (the one examined, or the same with other ratios).

        A row that is used twice (a ratio above one) is two samples, and each has its findings, with its own key; one
        that is not used is no sample. Findings about whole files are not among them (`Finding.of_file`), nor are those
        of a kind beyond the first `KEPT`.
        """
        corpus = self.examined.corpus if corpus is None else corpus
        rows = self.by_row()
        found: dict[int, list[Finding]] = {}
        for source, end in zip(corpus.sources, corpus.ends, strict=True):
            name, start = source.config.name, end - len(source)
            own = np.array([row for known, row in rows if known == name], dtype=np.int64)
            used = np.arange(len(source)) if source.chosen is None else source.chosen
            for place in np.flatnonzero(np.isin(used, own)).tolist():
                key = corpus.key(start + place)
                found[key.index] = [replace(finding, key=key) for finding in rows[name, int(used[place])]]
        return found

    def of_kind(self, kind: str) -> list[Finding]:
        """The findings of one kind, in the order of the corpus."""
        return [finding for finding in self.findings if finding.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """As plain values. At most `KEPT` findings of a kind are among them; `count` says how many there are."""
        return {
            "meta": str(self.meta),
            "samples": self.samples,
            "media": self.media,
            "errors": self.count("error"),
            "warnings": self.count("warning"),
            "notices": self.count("notice"),
            "processor": self.processor,
            "pack_size": self.pack_size,
            "deep": self.deep,
            "seconds": self.seconds,
            "kept_per_kind": KEPT,
            "kinds": [self._kind_summary(kind, count) for kind, count in self.counts.items()],
        }

    def _kind_summary(self, kind: str, count: int) -> dict[str, Any]:
        about = KINDS[kind]
        return {
            "kind": kind,
            "severity": about.severity,
            "training": about.training,
            "count": count,
            "findings": [_plain(finding) for finding in self.of_kind(kind)],
        }


def left_out_for(*, strict: bool) -> tuple[Severity, ...]:
    """The severities of what is left out of a clean copy, and makes the doctor fail."""
    return ("error", "warning") if strict else ("error",)


def _plain(finding: Finding) -> dict[str, Any]:
    shown: dict[str, Any] = {"where": finding.where, "detail": finding.detail, "source": finding.source}
    if finding.row is not None:
        shown["row"] = finding.row
    return shown if finding.key is None else {**shown, "index": finding.key.index}
