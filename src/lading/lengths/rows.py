"""What the rows of one data file cost: a record each, in order of row, and a word about those that cannot be used."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import Reason
from lading.records import COLUMNS, Dropped, Length, column_type

_NARROW = {name: column_type(name) is np.int32 for name in COLUMNS}
RECORD = np.dtype(
    [("row", np.int64), *((name, column_type(name)) for name in sorted(COLUMNS, key=_NARROW.__getitem__))]
)
"""One row: its number in the file, and its columns; the wide ones first, so that all of them are aligned."""

Records = NDArray[Any]
"""An array of `RECORD`."""

_numbers = attrgetter(*COLUMNS)
_NOTHING = (0,) * len(COLUMNS)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """Why a row cannot be used."""

    reason: Reason
    detail: str


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Counted:
    """Rows of a file that were looked at. Law: rows ascend; a row has 0 tokens if, and only if, it has a refusal."""

    records: Records = field(default_factory=lambda: np.zeros(0, dtype=RECORD))
    refused: Mapping[int, Refusal] = field(default_factory=dict)
    unread: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Keys that nobody reads: how many of these rows have each, and the first that has."""

    @classmethod
    def of(
        cls,
        rows: Sequence[int],
        answers: Sequence[Length | Dropped],
        unread: Mapping[str, tuple[int, int]] | None = None,
    ) -> Counted:
        """What was answered for these ascending rows.

        >>> counted = Counted.of([3, 8], [Length(tokens=5, label_tokens=2), Length(tokens=7, label_tokens=4)])
        >>> counted.records["row"].tolist(), counted.records["label_tokens"].tolist()
        ([3, 8], [2, 4])
        """
        records = np.zeros(len(rows), dtype=RECORD)
        records["row"] = rows
        numbers = [_numbers(answer) if isinstance(answer, Length) else _NOTHING for answer in answers]
        for name, column in zip(COLUMNS, zip(*numbers, strict=True), strict=bool(numbers)):
            records[name] = column
        refused = {
            row: Refusal(reason=answer.reason, detail=answer.detail)
            for row, answer in zip(rows, answers, strict=True)
            if isinstance(answer, Dropped)
        }
        return cls(records=records, refused=refused, unread=unread or {})

    def __len__(self) -> int:
        return len(self.records)

    @property
    def sound(self) -> bool:
        """Whether the law holds; what was read from a disk is not believed without."""
        rows = self.records["row"]
        bare = rows[self.records["tokens"] == 0].tolist()
        return bool(np.all(rows[1:] > rows[:-1])) and bare == sorted(self.refused)

    def places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where the records of these rows are, and which of them are there at all.

        >>> Counted.of([3, 8], [Length(tokens=5, label_tokens=2)] * 2).places(np.array([8, 4]))
        (array([1, 1]), array([ True, False]))
        """
        own = self.records["row"]
        places = np.searchsorted(own, rows)
        inside = places < len(own)
        found = inside.copy()
        found[inside] = own[places[inside]] == rows[inside]
        return places, found


def merge(pieces: Iterable[Counted]) -> Counted:
    """All rows of the pieces; of a row that several have, the last one's word.

    >>> one, other = (Counted.of([1, 2], [Length(tokens=n, label_tokens=1)] * 2) for n in (5, 6))
    >>> merge([one, other]).records["tokens"].tolist()
    [6, 6]
    """
    own = [piece for piece in pieces if len(piece)]
    if len(own) < 2:
        return own[0] if own else Counted()
    records = np.concatenate([piece.records for piece in own])
    records = records[np.argsort(records["row"], kind="stable")]
    last = np.append(records["row"][1:] != records["row"][:-1], True)
    records = records[last]
    said = {row: refusal for piece in own for row, refusal in piece.refused.items()}
    bare = records["row"][records["tokens"] == 0].tolist()
    unread: dict[str, tuple[int, int]] = {}
    for piece in own:
        for key, (count, first) in piece.unread.items():
            before, earliest = unread.get(key, (0, first))
            unread[key] = (before + count, min(first, earliest))
    return Counted(records=records, refused={row: said[row] for row in bare}, unread=unread)
