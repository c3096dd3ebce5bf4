"""The skip policy: the one place where any error may become a named skip.

A `SkipSample` is a room's own word that a sample cannot be used. Any other error while a sample is read (a decoder that
breaks in a new way, say) must not end a run of a week either: it is written down under `unexpected_error`, with its
type. With `strict`, both are raised. Errors of ours (`ExactnessError`) and of the configuration are always raised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from lading.errors import LadingError, Reason, SkipSample
from lading.records import Dropped, SampleKey
from lading.workers.watchdog import Watchdog

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, kw_only=True, slots=True)
class SkipPolicy:
    """How errors of single samples are met."""

    strict: bool = False
    watchdog: Watchdog | None = None
    """Who gives up what takes too long."""

    def attempt(self, key: SampleKey, work: Callable[[], T]) -> T | Dropped:
        """What `work` gives, or why the sample is left out."""
        try:
            return work() if self.watchdog is None else self.watchdog.run(key, work)
        except SkipSample as skip:
            return self.settle(key, skip)
        except (LadingError, MemoryError):
            raise
        except Exception as error:  # noqa: BLE001 - this is the skip policy: see the module's first lines
            found = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            unexpected = SkipSample(Reason.UNEXPECTED_ERROR, found=found, where=key.where)
            unexpected.__cause__ = error
            return self.settle(key, unexpected)

    def attempt_each(
        self,
        keys: Sequence[SampleKey],
        read: Callable[[SampleKey], R],
        work: Callable[[list[R]], list[T | SkipSample]],
    ) -> list[T | Dropped]:
        """What `work` makes of all that can be read, at once; what cannot be used says why, in its place.

        Where `work` breaks, every sample is tried by itself, so that only one is lost.
        """
        found = [self.attempt(key, partial(read, key)) for key in keys]
        good = [item for item in found if not isinstance(item, Dropped)]
        made: Iterator[T | SkipSample | Dropped]
        try:
            made = iter(work(good))
        except (LadingError, MemoryError):
            raise
        except Exception:  # noqa: BLE001 - the same policy, for all at once: the culprit is found one by one
            pairs = zip(keys, found, strict=True)
            made = iter(
                [self.attempt(key, partial(_alone, work, own)) for key, own in pairs if not isinstance(own, Dropped)]
            )
        results: list[T | Dropped] = []
        for key, item in zip(keys, found, strict=True):
            outcome = item if isinstance(item, Dropped) else next(made)
            results.append(self.settle(key, outcome) if isinstance(outcome, SkipSample) else outcome)
        return results

    def rest(self) -> None:
        """All that was asked for is done; nobody waits."""
        if self.watchdog is not None:
            self.watchdog.rest()

    def settle(self, key: SampleKey, skip: SkipSample) -> Dropped:
        """Write a refusal down, or raise it with the sample's place."""
        if self.strict:
            placed = skip if skip.where else skip.at(key.where)
            raise placed from skip.__cause__
        return Dropped(key=key, reason=skip.reason, detail=str(skip))


def _alone(work: Callable[[list[R]], list[T]], item: R) -> T:
    return work([item])[0]
