"""Which samples are shown, where there are more than a page holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from lading.records import PackPlan


def choose(total: int, limit: int, *, marked: Sequence[int], plan: PackPlan) -> list[int]:
    """At most `limit` of `total` samples, ascending: a quarter of them `marked` (dropped, or with a finding), a quarter
    those of the first packs, and the rest spread over the corpus.

    >>> from lading.plan import make_plan
    >>> from lading.records import LengthTable
    >>> plan = make_plan(LengthTable.of(tokens=np.full(100, 5)), pack_size=10)
    >>> chosen = choose(100, 8, marked=[97, 98, 99], plan=plan)
    >>> len(chosen), 97 in chosen, set(plan.pack(plan.order[0, 0]).tolist()) <= set(chosen)
    (8, True, True)
    """
    if total <= limit:
        return list(range(total))
    chosen: set[int] = set()
    _fill(chosen, _spread(sorted(marked), max(1, limit // 4)), limit)
    packs = (index for number in plan.order.ravel()[:limit].tolist() for index in plan.pack(number).tolist())
    _fill(chosen, packs, min(limit, len(chosen) + max(1, limit // 4)))
    _fill(chosen, _spread(range(total), limit - len(chosen)), limit)
    _fill(chosen, range(total), limit)  # where some of those were chosen already
    return sorted(chosen)


def _fill(chosen: set[int], more: Iterable[int], limit: int) -> None:
    for index in more:
        if len(chosen) >= limit:
            return
        chosen.add(index)


def _spread(values: Sequence[int], count: int) -> list[int]:
    places = np.linspace(0, len(values) - 1, min(count, len(values))).round().astype(int)
    return [values[place] for place in places.tolist()]
