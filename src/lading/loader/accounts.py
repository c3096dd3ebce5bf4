"""The ledger of an epoch as it begins: what could not be counted, and what no pack can hold, is already in it."""

from __future__ import annotations

from lading.errors import SkipSample
from lading.ledger import Ledger, too_long
from lading.loader.samples import Samples
from lading.records import LengthTable, PackPlan


def open_books(samples: Samples, table: LengthTable, plan: PackPlan) -> Ledger:
    """The ledger before the first step. Under a strict policy an over-long sample is raised instead."""
    ledger = Ledger.open(table)
    for index in plan.too_long.tolist():
        entry = too_long(samples.corpus.key(index), int(table.tokens[index]), plan.pack_size)
        if samples.policy.strict:
            raise SkipSample(entry.reason, found=entry.detail, where=entry.key.where)
        ledger.dropped(entry)
    return ledger
