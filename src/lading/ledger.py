"""What became of each sample: trained on, replaced by a named one, or dropped for a named reason.

>>> import numpy as np
>>> ledger = Ledger(sources=("cats", "dogs"), source=np.array([0, 0, 1], dtype=np.int32))
>>> ledger.trained([0, 2])
>>> ledger.dropped(Dropped(key=SampleKey(index=1, source="cats", where="c.jsonl:2"),
...                        reason=Reason.MISSING_MEDIA, detail="no image file cat.jpg"))
>>> ledger.totals()["cats"]
{'input': 2, 'trained': 1, 'replaced': 0, 'dropped': 1, 'pending': 0, 'truncated': 0, 'tokens_cut': 0,
 'reasons': {'missing_media': 1}}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from enum import IntEnum
from pathlib import Path
from typing import TypedDict

import numpy as np
from numpy.typing import NDArray

from lading.cache import replacing
from lading.errors import ExactnessError, Reason
from lading.records import Dropped, LengthTable, SampleKey, Truncated, UnreadKey

VERSION = 1


class Fate(IntEnum):
    """Where a sample is. Every sample has exactly one fate."""

    PENDING = 0
    TRAINED = 1
    REPLACED = 2
    DROPPED = 3


class SourceTotals(TypedDict):
    """Law: input = trained + replaced + dropped + pending, and pending is 0 when an epoch is over.

    `truncated` are those of the trained and the pending that were too long and are trained on in part; `tokens_cut` is
    what they lost.
    """

    input: int
    trained: int
    replaced: int
    dropped: int
    pending: int
    truncated: int
    tokens_cut: int
    reasons: dict[str, int]


class Ledger:
    """One epoch's account. Law: totals add up, per source and over all, at any moment."""

    def __init__(self, *, sources: Sequence[str], source: NDArray[np.int32]) -> None:
        self.sources = tuple(sources)
        self._source = source
        self._fate = np.zeros(len(source), dtype=np.uint8)
        self._entries: dict[int, Dropped] = {}
        self._again: Counter[int] = Counter()
        self.key: Callable[[int], SampleKey] | None = None
        """Names a sample, where the corpus is at hand."""
        self._truncated: dict[int, Truncated] = {}
        self.unread: tuple[UnreadKey, ...] = ()
        """Keys of rows that nobody reads."""

    @classmethod
    def open(cls, table: LengthTable) -> Ledger:
        """The ledger of a corpus that was counted: what could not be counted or was cut is already in it."""
        ledger = cls(sources=table.sources, source=table.source)
        ledger.unread = table.unread
        for dropped in table.dropped:
            ledger.dropped(dropped)
        for truncated in table.truncated:
            ledger.truncated(truncated)
        return ledger

    def __getstate__(self) -> dict[str, object]:
        # A ledger travels between ranks; the corpus stays where it is.
        return {**self.__dict__, "key": None}

    @property
    def repeats(self) -> int:
        """Extra passes over samples already trained on (the last step's filling, sample by sample)."""
        return self._again.total()

    def trained(self, indices: Sequence[int] | NDArray[np.int64]) -> None:
        """These samples went through a training step. Numbers below 0 are not of the corpus (placeholders)."""
        every = np.asarray(indices, dtype=np.int64)
        own, times = np.unique(every[every >= 0], return_counts=True)
        extra = times - 1 + (self._fate[own] == Fate.TRAINED)
        again = extra > 0
        self._again.update(dict(zip(own[again].tolist(), extra[again].tolist(), strict=True)))
        self._fate[own] = Fate.TRAINED
        for index in self._entries.keys() & set(own.tolist()) if self._entries else ():
            del self._entries[index]

    def dropped(self, dropped: Dropped) -> None:
        """This sample is left out, for a reason, or replaced by the samples it names."""
        self._fate[dropped.key.index] = Fate.REPLACED if dropped.by else Fate.DROPPED
        self._entries[dropped.key.index] = dropped

    def truncated(self, truncated: Truncated) -> None:
        """This sample is too long: where it is trained on, it is in part."""
        self._truncated[truncated.key.index] = truncated

    def merge(self, other: Ledger) -> None:
        """Take over what another rank's ledger knows and this one does not."""
        news = (self._fate == Fate.PENDING) & (other._fate != Fate.PENDING)
        # What one rank was told to leave out and another trained on was trained on.
        news |= (self._fate != Fate.TRAINED) & (other._fate == Fate.TRAINED)
        both = (self._fate == Fate.TRAINED) & (other._fate == Fate.TRAINED)
        self._fate[news] = other._fate[news]
        for index in [index for index in self._entries if news[index]]:
            del self._entries[index]
        self._entries.update({index: entry for index, entry in other._entries.items() if news[index]})
        self._again.update(other._again)
        self._again.update(np.flatnonzero(both).tolist())
        self._truncated = {**other._truncated, **self._truncated}

    def totals(self) -> dict[str, SourceTotals]:
        """Totals by source, in the corpus's order."""
        counts = np.zeros((len(self.sources), len(Fate)), dtype=np.int64)
        np.add.at(counts, (self._source, self._fate), 1)
        reasons = [Counter[str]() for _ in self.sources]
        for index, dropped in self._entries.items():
            reasons[self._source[index]][dropped.reason.value] += 1
        cut = np.zeros((len(self.sources), 2), dtype=np.int64)
        for index, truncated in self._trained_in_part():
            cut[self._source[index]] += (1, truncated.tokens - truncated.kept)
        return {
            name: _totals(counts[number].tolist(), cut[number].tolist(), dict(reasons[number].most_common()))
            for number, name in enumerate(self.sources)
        }

    def _trained_in_part(self) -> list[tuple[int, Truncated]]:
        """The truncated samples that are trained on or will be, in the corpus's order."""
        alive = (Fate.TRAINED, Fate.PENDING)
        return [(index, entry) for index, entry in sorted(self._truncated.items()) if self._fate[index] in alive]

    def total(self) -> SourceTotals:
        """Totals over all sources."""
        rows = list(self.totals().values())
        reasons = Counter[str]()
        for row in rows:
            reasons.update(row["reasons"])
        return {
            "input": sum(row["input"] for row in rows),
            "trained": sum(row["trained"] for row in rows),
            "replaced": sum(row["replaced"] for row in rows),
            "dropped": sum(row["dropped"] for row in rows),
            "pending": sum(row["pending"] for row in rows),
            "truncated": sum(row["truncated"] for row in rows),
            "tokens_cut": sum(row["tokens_cut"] for row in rows),
            "reasons": dict(reasons.most_common()),
        }

    def check(self, *, finished: bool = True) -> None:
        """Raise when the accounts do not balance: a sample without a fate after the epoch, or a reason without one.

        The ledger of one rank knows that rank's samples only; `merge` the others' before asking.
        """
        total = self.total()
        accounted = total["trained"] + total["replaced"] + total["dropped"] + total["pending"]
        named = total["replaced"] + total["dropped"] == len(self._entries)
        whole = accounted == total["input"] == len(self._source)
        if not whole or not named or (finished and total["pending"]):
            raise ExactnessError(
                found=f"{total}", wanted="input = trained + replaced + dropped, each with a reason", where="ledger"
            )

    def entries(self) -> list[dict[str, object]]:
        """Everything that was not trained on, by name: sample, source, place, fate, reason, detail."""
        return [
            {
                "index": index,
                "source": dropped.key.source,
                "where": dropped.key.where,
                "fate": Fate(int(self._fate[index])).name.lower(),
                "reason": dropped.reason.value,
                "detail": dropped.detail,
                **({"by": [str(key) for key in dropped.by]} if dropped.by else {}),
            }
            for index, dropped in sorted(self._entries.items())
        ]

    def repeated(self) -> list[dict[str, object]]:
        """Samples that were trained on more than once, by name, and how often more."""
        return [
            {
                "index": index,
                "source": self.sources[self._source[index]],
                **({"where": self.key(index).where} if self.key else {}),
                "again": times,
            }
            for index, times in sorted(self._again.items())
        ]

    def truncations(self) -> list[dict[str, object]]:
        """Everything that is trained on in part, by name: sample, source, place, fate, tokens of the whole and kept."""
        return [
            {
                "index": index,
                "source": entry.key.source,
                "where": entry.key.where,
                "fate": Fate(int(self._fate[index])).name.lower(),
                "tokens": entry.tokens,
                "kept": entry.kept,
            }
            for index, entry in self._trained_in_part()
        ]

    def save(self, path: str | Path) -> None:
        """Write the account as JSON: totals first, then every sample that was not trained on, or in part."""
        account = {
            "version": VERSION,
            "unread": [asdict(own) for own in self.unread],
            "total": self.total(),
            "repeats": self.repeats,
            "repeated": self.repeated(),
            "sources": self.totals(),
            "entries": self.entries(),
            "truncated": self.truncations(),
        }
        text = json.dumps(account, indent=2, ensure_ascii=False) + "\n"
        with replacing(Path(path)) as file:
            # A broken file name may hold half a character; it is written as its escape, which JSON reads back.
            file.write(text.encode("utf-8", errors="backslashreplace"))

    def __str__(self) -> str:
        rows = [*self.totals().items(), ("all", self.total())]
        unread = [own for own in self.unread if own.kind != "harmless"]
        head = [f"{own.source}: nobody reads {own.key} ({own.count:,}, first {own.where})" for own in unread]
        return "\n".join([*head, *(_line(name, totals) for name, totals in rows)])


def too_long(key: SampleKey, tokens: int, pack_size: int) -> Dropped:
    """The entry of a sample that no pack can hold."""
    detail = f"found {tokens} tokens; wanted at most the pack size, {pack_size}"
    return Dropped(key=key, reason=Reason.TOO_LONG, detail=detail)


def _totals(counts: list[int], cut: list[int], reasons: dict[str, int]) -> SourceTotals:
    return {
        "input": sum(counts),
        "trained": counts[Fate.TRAINED],
        "replaced": counts[Fate.REPLACED],
        "dropped": counts[Fate.DROPPED],
        "pending": counts[Fate.PENDING],
        "truncated": cut[0],
        "tokens_cut": cut[1],
        "reasons": reasons,
    }


def _line(name: str, totals: SourceTotals) -> str:
    reasons = ", ".join(f"{reason} {count}" for reason, count in totals["reasons"].items())
    return (
        f"{name}: {totals['input']} in = {totals['trained']} trained + {totals['replaced']} replaced"
        f" + {totals['dropped']} dropped" + (f" + {totals['pending']} pending" if totals["pending"] else "")
        + (f" ({reasons})" if reasons else "")
        + (f"; {totals['truncated']} truncated by {totals['tokens_cut']} tokens" if totals["truncated"] else "")
    )  # fmt: skip
