"""Batches in their order, each begun early enough: a pack of video does not hold up the packs of text around it.

One `DataLoader` of many workers deals batches round and round. Behind a pack that takes ten times as long, the next
ones of its worker wait, and the training step with them. Here every worker has a `DataLoader` of its own, and which
batches it makes is planned backwards, from when they are due: a heavy one keeps its worker free for the turns before
it, and what is due in the meantime goes to the others.

Batches are handed out in the order of the plan, whoever makes them, and no more of them wait than with one `DataLoader`
of as many workers: two for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

from torch.utils.data import DataLoader

from lading.workers.restart import Reviving

T = TypeVar("T")
Numbers = list[int]
"""The packs of one batch."""


class Ahead(Generic[T]):
    """Iterates `batches` in their order, by a `DataLoader` for each lane, which `open_loader` makes of its share.

    A worker that dies is replaced; what the others have under way is not lost with it. `on_death` is told its lane and
    its exit code.
    """

    def __init__(
        self,
        open_loader: Callable[[int, list[Numbers]], DataLoader[Any]],
        batches: Sequence[Numbers],
        lanes: Sequence[int],
        on_death: Callable[[int, int | None], object] = lambda *_: None,
    ) -> None:
        self._open_loader, self._batches, self._lanes, self._on_death = open_loader, batches, lanes, on_death

    def __iter__(self) -> Iterator[T]:
        shares: dict[int, list[Numbers]] = {}
        for batch, lane in zip(self._batches, self._lanes, strict=True):
            shares.setdefault(lane, []).append(batch)
        # All of them begin now, not when their first batch is due.
        running = {
            lane: Reviving[T](partial(self._open_loader, lane), share, partial(self._on_death, lane))
            for lane, share in sorted(shares.items())
        }
        for lane in self._lanes:
            yield next(running[lane])
