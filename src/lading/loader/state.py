"""The cursor: how far an epoch has come, and the fingerprint of the plan it counts in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lading.errors import ConfigError, Reason
from lading.records import Dropped, PackPlan, SampleKey

VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """Law: together with the corpus and the configuration, this says which batch comes next.

    `step` counts steps of the plan, not batches, so that a run may carry on with another batch size.
    """

    epoch: int
    step: int
    plan: str
    dropped: tuple[Dropped, ...] = ()
    """What failed on the way here: the ledger of the run that carries on must know it."""
    version: int = VERSION

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Cursor:
        """From a checkpoint."""
        if set(state) != {"epoch", "step", "plan", "dropped", "version"} or state["version"] != VERSION:
            raise ConfigError(found=f"a state with {', '.join(state)}", wanted=f"one of version {VERSION}")
        return cls(**{**state, "dropped": tuple(_entry(entry) for entry in state["dropped"])})


def _entry(entry: Mapping[str, Any]) -> Dropped:
    return Dropped(
        key=SampleKey(**entry["key"]),
        reason=Reason(entry["reason"]),
        detail=entry["detail"],
        by=tuple(SampleKey(**key) for key in entry["by"]),
    )


def fingerprint(plan: PackPlan) -> str:
    """What tells one plan from another: every sample's place, and every number it was made with."""
    digest = hashlib.sha256()
    numbers = (plan.pack_size, plan.world_size, plan.seed, plan.epoch, plan.algorithm)
    digest.update(repr(numbers).encode())
    for array in (plan.members, plan.starts, plan.order):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
