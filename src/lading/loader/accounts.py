"""The ledger of an epoch as it begins, and as all ranks together see it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import Reason, SkipSample
from lading.ledger import Ledger, too_long
from lading.loader.ranks import Ranks
from lading.records import Dropped, LengthTable, PackPlan
from lading.samples.samples import Samples


def open_ledger(samples: Samples, table: LengthTable, plan: PackPlan) -> Ledger:
    """The ledger before the first step: what could not be counted, and what no pack can hold, is already in it.

    Under a strict policy an over-long sample is raised instead.
    """
    ledger = Ledger.open(table)
    ledger.key = samples.corpus.key
    for index in plan.too_long.tolist():
        entry = too_long(samples.corpus.key(index), int(table.tokens[index]), plan.pack_size)
        if samples.policy.strict:
            raise SkipSample(entry.reason, found=entry.detail.removeprefix("found "), where=entry.key.where)
        ledger.dropped(entry)
    return ledger


def last_step_entries(samples: Samples, plan: PackPlan, packs: NDArray[np.int64], world_size: int) -> Iterator[Dropped]:
    """The samples of packs that are left out of a last step, each by name."""
    detail = f"found {len(packs)} packs left for the last step; wanted {world_size}, one for each rank"
    for number in packs.tolist():
        for index in plan.pack(number).tolist():
            yield Dropped(key=samples.corpus.key(index), reason=Reason.LAST_STEP, detail=detail)


def merged_ledger(ledger: Ledger, ranks: Ranks | None = None) -> Ledger:
    """What the ledgers of all ranks say together; every process of their group must call this, each gets it all.

    Of processes that are fed the same (those of one `rank`), the first one's counts.
    """
    import torch.distributed as distributed

    if not (distributed.is_available() and distributed.is_initialized()):
        return ledger
    own = (distributed.get_rank() if ranks is None else ranks.rank, ledger)
    group = None if ranks is None else ranks.group
    gathered: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(gathered, own, group=group)
    ledgers: dict[int, Ledger] = {}
    for rank, one in gathered:
        ledgers.setdefault(rank, one)
    first, *others = ledgers.values()
    for other in others:
        first.merge(other)
    first.key = ledger.key
    return first
