"""What a look at a corpus found, before anything is trained on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lading.records.samples import SampleKey

Severity = Literal["error", "warning", "notice"]
"""An error costs the sample (or the run); a warning is trained on, but perhaps not as its author meant; a notice is
only worth knowing."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One thing wrong with one sample, or with a whole file. Law: `kind` names a kind that `doctor` explains.

    >>> key = SampleKey(index=3, source="shapes", where="shapes.jsonl:4")
    >>> print(Finding(kind="missing_media", severity="error", where=key.where, detail="no cat.png", key=key))
    error missing_media shapes.jsonl:4: no cat.png
    """

    kind: str
    severity: Severity
    where: str
    """`file:line`, or a file alone where it is wrong as a whole."""
    detail: str
    key: SampleKey | None = None
    """The sample (the first, where a row is used again); none where a file is wrong as a whole, or a row is not in the
    share that its source uses."""
    source: str = ""
    """The data set: a file may be in a corpus twice."""
    row: int | None = None
    """The row of its file; none where a file is wrong as a whole."""

    @property
    def of_file(self) -> bool:
        """Whether a file is wrong as a whole."""
        return self.key is None and self.row is None

    def __str__(self) -> str:
        return f"{self.severity} {self.kind} {self.where}: {self.detail}"
