"""A corpus in integers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from lading import plain
from lading.errors import Reason
from lading.records.samples import Cut, SampleKey


@dataclass(frozen=True, kw_only=True, slots=True)
class Length:
    """What one sample costs, in integers. Law: `tokens` equals the length of its `input_ids`, exactly."""

    tokens: int
    label_tokens: int
    visual_tokens: int = 0
    audio_tokens: int = 0
    patches: int = 0
    """Rows that the vision tower takes in."""
    patch_pairs: int = 0
    """Pairs of patches that may see each other in the vision tower: Σ patches² over its pictures and frames."""
    images: int = 0
    videos: int = 0
    frames: int = 0
    """Frames of its videos that are used."""
    audios: int = 0


COLUMNS = tuple(field.name for field in fields(Length))
"""The numbers of a sample, in the order of a table's columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Dropped:
    """One sample left out, by name and reason. Law: with `by`, it was replaced by those samples, not just dropped."""

    key: SampleKey
    reason: Reason
    detail: str
    by: tuple[SampleKey, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """As plain values: what JSON and every way to save a checkpoint can hold."""
        return {**asdict(self), "reason": self.reason.value, "by": [asdict(key) for key in self.by]}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], place: str = "a dropped sample") -> Dropped:
        """From plain values; `ConfigError` where they are none of a dropped sample's."""
        known = plain.named(value, place, ("key", "reason", "detail", "by"))
        reason = plain.text(known["reason"], f"{place}: reason")
        if reason not in set(Reason):
            raise plain.refused(reason, f"{place}: reason", f"one of {', '.join(Reason)}")
        return cls(
            key=SampleKey.from_dict(known["key"], f"{place}: key"),
            reason=Reason(reason),
            detail=plain.text(known["detail"], f"{place}: detail"),
            by=tuple(SampleKey.from_dict(key, f"{place}: by") for key in plain.listed(known["by"], f"{place}: by")),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Truncated:
    """One sample that was too long and is trained on in part, by name. Law: 0 < kept < tokens."""

    key: SampleKey
    tokens: int
    """Of the whole sample."""
    kept: int
    """Of the part that is trained on."""
    cut: Cut


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreadKey:
    """A key of a source's rows that nobody reads. Law: `count` rows have it, the first of them at `where`."""

    source: str
    key: str
    kind: Literal["how_to_train", "harmless", "unread"]
    """It says how to train and is ignored on purpose; it says nothing about training; nobody knows what it says."""
    count: int
    where: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LengthTable:
    """The corpus in integers. Law: row i is sample i; a sample that cannot be counted has 0 tokens and a `Dropped`."""

    sources: tuple[str, ...]
    source: NDArray[np.int32]
    """The number of each sample's source."""
    tokens: NDArray[np.int32]
    label_tokens: NDArray[np.int32]
    visual_tokens: NDArray[np.int32]
    audio_tokens: NDArray[np.int32]
    patches: NDArray[np.int32]
    patch_pairs: NDArray[np.int64]
    images: NDArray[np.int32]
    videos: NDArray[np.int32]
    frames: NDArray[np.int32]
    audios: NDArray[np.int32]
    dropped: tuple[Dropped, ...] = ()
    truncated: tuple[Truncated, ...] = ()
    """Samples whose row is that of the part which is trained on."""
    unread: tuple[UnreadKey, ...] = ()
    """Keys that rows have and nobody reads."""

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def of(
        cls,
        *,
        sources: Sequence[str] = ("corpus",),
        source: NDArray[np.int32] | None = None,
        dropped: Sequence[Dropped] = (),
        unread: Sequence[UnreadKey] = (),
        **columns: NDArray[Any],
    ) -> LengthTable:
        """A table of the given columns; those left out are zero and take no memory.

        >>> table = LengthTable.of(tokens=np.array([5, 7]), patches=np.array([0, 4]))
        >>> table.patches.tolist(), table.images.tolist()
        ([0, 4], [0, 0])
        """
        samples = len(columns["tokens"])
        every = {
            name: np.asarray(columns[name], dtype=column_type(name))
            if name in columns
            else np.broadcast_to(np.zeros((), column_type(name)), samples)
            for name in COLUMNS
        }
        first = np.broadcast_to(np.zeros((), np.int32), samples) if source is None else source
        return cls(
            sources=tuple(sources), source=first, dropped=tuple(dropped), truncated=(), unread=tuple(unread), **every
        )


def column_type(name: str) -> type[np.signedinteger[Any]]:
    """The type of a column: pairs outgrow 32 bits, nothing else does."""
    return np.int64 if name == "patch_pairs" else np.int32
