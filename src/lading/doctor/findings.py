"""What an examination found, and how it is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.doctor.kinds import KINDS, NUMBERS, mask
from lading.records import Finding
from lading.records.findings import Severity

KEPT = 10_000
"""Findings of one kind that are kept by name; beyond these they are only counted."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Findings:
    """Everything that was found in a corpus.

    Law: `counts` and `marks` are complete; `findings` holds the first `KEPT` of each kind, in the order of the corpus.
    """

    meta: Path
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
        """How many errors, or warnings, there are."""
        return sum(count for kind, count in self.counts.items() if KINDS[kind].severity == severity)

    def fails(self, *, strict: bool = False) -> bool:
        """Whether there are errors; with `strict`, whether there is anything at all."""
        return bool(self.counts) if strict else self.count("error") > 0

    def left_out(self, source: str, *, strict: bool = False) -> NDArray[np.bool_]:
        """Which rows of a data set have errors; with `strict`, which have anything."""
        bits = mask("error") | (mask("warning") if strict else 0)
        chosen: NDArray[np.bool_] = (self.marks[source] & np.uint64(bits)) != 0
        return chosen

    def kinds_of(self, source: str, row: int) -> list[str]:
        """The kinds found in a row."""
        marks = int(self.marks[source][row])
        return [kind for kind, number in NUMBERS.items() if marks >> number & 1]

    def by_place(self) -> dict[str, list[Finding]]:
        """Findings by where they are: those of sample i stand under `corpus.key(i).where`.

        A row that is used twice (a ratio above one) is two samples in one place, so both find theirs.
        """
        places: dict[str, list[Finding]] = {}
        for finding in self.findings:
            places.setdefault(finding.where, []).append(finding)
        return places

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
            "processor": self.processor,
            "pack_size": self.pack_size,
            "deep": self.deep,
            "seconds": self.seconds,
            "kept_per_kind": KEPT,
            "kinds": [self._told(kind, count) for kind, count in self.counts.items()],
        }

    def _told(self, kind: str, count: int) -> dict[str, Any]:
        about = KINDS[kind]
        return {
            "kind": kind,
            "severity": about.severity,
            "training": about.training,
            "count": count,
            "findings": [_plain(finding) for finding in self.of_kind(kind)],
        }


def _plain(finding: Finding) -> dict[str, Any]:
    key = finding.key
    sample = {"index": key.index, "source": key.source} if key is not None else {}
    return {"where": finding.where, "detail": finding.detail, **sample}
