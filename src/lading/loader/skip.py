"""The skip policy: the one place where any error may become a named skip.

A `SkipSample` is a room's own word that a sample cannot be used. Any other error while a sample is read (a decoder that
breaks in a new way, say) must not end a run of a week either: it is written down under `unexpected_error`, with its
type. With `strict`, both are raised. Errors of ours (`ExactnessError`) and of the configuration are always raised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from lading.errors import LadingError, Reason, SkipSample
from lading.records import Dropped, SampleKey

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipPolicy:
    """How errors of single samples are met."""

    strict: bool = False

    def attempt(self, key: SampleKey, work: Callable[[], T]) -> T | Dropped:
        """What `work` gives, or why the sample is left out."""
        try:
            return work()
        except SkipSample as skip:
            return self.settle(key, skip)
        except (LadingError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - this is the skip policy: see the module's first lines
            found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            unexpected = SkipSample(Reason.UNEXPECTED_ERROR, found=found, where=key.where)
            unexpected.__cause__ = error
            return self.settle(key, unexpected)

    def settle(self, key: SampleKey, skip: SkipSample) -> Dropped:
        """Write a refusal down, or raise it with the sample's place."""
        if self.strict:
            placed = skip if skip.where else skip.at(key.where)
            raise placed from skip.__cause__
        return Dropped(key=key, reason=skip.reason, detail=str(skip))
