"""What was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

Aspect = Literal["tokens", "labels", "positions", "pixels", "loss", "sight", "lost"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """One document that is not in its pack what it is alone. Law: `where` is enough to open the sample."""

    where: str
    aspect: Aspect
    detail: str

    def __str__(self) -> str:
        return f"{self.where}: {self.aspect}: {self.detail}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What became of the samples that were verified. Law: what could not be compared is in `not_run`, with the reason.

    >>> found = Verification(
    ...     samples=3, documents=2, packs=1, differences=(), max_abs_loss_diff=2e-6, max_abs_sight_diff=0.0, losses=2,
    ...     not_run={}, dropped={"missing_media": 1}, tolerance=1e-5, family="qwen2_5_vl", model="small",
    ...     attention="positions", seconds=0.4)
    >>> found.holds, found.to_dict()["labels_equal"], found.to_dict()["lost"]
    (True, True, 0)
    """

    samples: int
    """Samples that were verified."""
    documents: int
    """Documents of the packs that were compared."""
    packs: int
    differences: tuple[Difference, ...]
    max_abs_loss_diff: float
    """The largest difference of a document's mean loss, packed and alone."""
    max_abs_sight_diff: float
    """The largest change of a document's last hidden states while only other documents were changed."""
    losses: int
    """Documents whose loss was compared."""
    not_run: Mapping[str, int]
    """What could not be compared, and why → documents."""
    dropped: Mapping[str, int]
    """Reason → samples that are in no pack because of it."""
    tolerance: float
    family: str
    model: str
    attention: str
    seconds: float

    @property
    def holds(self) -> bool:
        """Whether every comparison that was made came out equal, and at least one was made."""
        return self.documents > 0 and not self.differences

    def differing(self, aspect: Aspect) -> int:
        """Documents that differ in one aspect."""
        return len({difference.where for difference in self.differences if difference.aspect == aspect})

    def to_dict(self) -> dict[str, Any]:
        """For programs: the counts first, then every difference by name."""
        return {
            "holds": self.holds,
            "samples": self.samples,
            "documents": self.documents,
            "packs": self.packs,
            **{f"{aspect}_equal": not self.differing(aspect) for aspect in ("tokens", "labels", "positions", "pixels")},
            "losses_compared": self.losses,
            # Nothing compared is not nothing different.
            "max_abs_loss_diff": self.max_abs_loss_diff if self.losses else None,
            "leaking_documents": self.differing("sight"),
            "max_abs_sight_diff": self.max_abs_sight_diff if self.losses else None,
            "lost": self.differing("lost"),
            "dropped": sum(self.dropped.values()),
            "dropped_by_reason": dict(self.dropped),
            "not_run": sum(self.not_run.values()),
            "not_run_reasons": dict(self.not_run),
            "tolerance": self.tolerance,
            "family": self.family,
            "model": self.model,
            "attention": self.attention,
            "seconds": self.seconds,
            "differences": [asdict(difference) for difference in self.differences],
        }
