"""The plan: a pure function of (lengths, config, seed, epoch)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lading.errors import ConfigError, UnknownName
from lading.plan.costs import pack_costs, vision_costs
from lading.plan.fingerprint import lengths_fingerprint
from lading.plan.knapsack import ALGORITHMS
from lading.plan.order import PLACINGS, order_packs, order_random
from lading.progress import task
from lading.records import TYPICAL_WORK, LengthTable, PackPlan, Work

DEFAULT_ALGORITHM = "balanced"
DEFAULT_PLACING = "balanced"
WINDOW = 1 << 20
"""Samples that are packed together. Past that, more choice no longer fills packs better, but costs memory and time."""


def make_plan(
    table: LengthTable,
    *,
    pack_size: int,
    world_size: int = 1,
    seed: int = 0,
    epoch: int = 0,
    algorithm: str = DEFAULT_ALGORITHM,
    placing: str = DEFAULT_PLACING,
    work: Work = TYPICAL_WORK,
) -> PackPlan:
    """Fill packs and place them on (step, rank). The same arguments always give the same plan.

    Samples are shuffled and packed a window at a time, so that others meet in every epoch. Which samples share a pack
    does not depend on the number of ranks.

    >>> plan = make_plan(LengthTable.of(tokens=np.array([5, 3, 7, 2, 99])), pack_size=10)
    >>> sorted(sorted(plan.pack(number).tolist()) for number in range(len(plan))), plan.too_long.tolist()
    ([[0, 1], [2, 3]], [4])
    """
    _check(pack_size, world_size, seed, epoch)
    for kind, name, known in (("packing algorithm", algorithm, ALGORITHMS), ("placing", placing, PLACINGS)):
        if name not in known:
            raise UnknownName(kind=kind, name=name, known=known, where="plan")
    random = np.random.default_rng([seed, epoch])
    usable = random.permutation(np.flatnonzero((table.tokens > 0) & (table.tokens <= pack_size)))
    windows = []
    with task("filling packs", len(usable)) as advance:
        for start in range(0, len(usable), WINDOW):
            window = usable[start : start + WINDOW]
            windows.append(_pack_window(table, window, pack_size, algorithm, work))
            advance(len(window))
    with task("placing packs"):
        packed = _Packed.joined(windows)
        chance = order_random(seed, epoch, world_size)
        placed = order_packs(packed.costs, world_size=world_size, random=chance, placing=placing)
    return PackPlan(
        pack_size=pack_size,
        world_size=world_size,
        seed=seed,
        epoch=epoch,
        algorithm=algorithm,
        placing=placing,
        lengths=lengths_fingerprint(table),
        samples=len(table),
        members=packed.members,
        starts=np.concatenate([[0], np.cumsum(packed.sizes)]).astype(np.int64),
        tokens=packed.tokens,
        costs=packed.costs,
        order=placed.order,
        repeated=placed.repeated,
        too_long=np.flatnonzero(table.tokens > pack_size),
        uncounted=len(table.dropped),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Packed:
    """Packs of a window, or of several."""

    members: NDArray[np.int64]
    sizes: NDArray[np.int64]
    tokens: NDArray[np.int64]
    costs: NDArray[np.float32]

    @classmethod
    def joined(cls, windows: list[_Packed]) -> _Packed:
        if not windows:
            none = np.zeros(0, dtype=np.int64)
            return cls(members=none, sizes=none, tokens=none, costs=np.zeros((0, 3), dtype=np.float32))
        return cls(
            members=np.concatenate([window.members for window in windows]),
            sizes=np.concatenate([window.sizes for window in windows]),
            tokens=np.concatenate([window.tokens for window in windows]),
            costs=np.concatenate([window.costs for window in windows]),
        )


def _pack_window(table: LengthTable, samples: NDArray[np.int64], pack_size: int, algorithm: str, work: Work) -> _Packed:
    tokens = table.tokens[samples].astype(np.int64)
    vision = vision_costs(table, samples, work)
    bins = ALGORITHMS[algorithm](tokens, pack_size, vision)
    in_packs = tokens[bins.members]
    return _Packed(
        members=samples[bins.members],
        sizes=np.diff(bins.starts),
        tokens=np.add.reduceat(in_packs, bins.starts[:-1]),
        costs=pack_costs(in_packs, vision[bins.members], bins.starts, work),
    )


def _check(pack_size: int, world_size: int, seed: int, epoch: int) -> None:
    if pack_size < 1:
        raise ConfigError(found=f"pack size {pack_size}", wanted="a positive number of tokens", where="plan")
    if world_size < 1:
        raise ConfigError(found=f"world size {world_size}", wanted="at least one rank", where="plan")
    if seed < 0 or epoch < 0:
        raise ConfigError(found=f"seed {seed}, epoch {epoch}", wanted="numbers from 0 up", where="plan")


def sample_capacity(table: LengthTable, *, pack_size: int, placeholder: int = 0, truncating: bool = False) -> int:
    """`pack_size`, less a placeholder's tokens if some batch may need one: no row is ever longer than a pack.

    Which packs come out without pictures is not known before they are planned, so all of them leave space, unless every
    sample shows something. A sample that is cut may lose what it shows.

    >>> tables = [LengthTable.of(tokens=np.array([9, 9]), images=np.array([1, shown])) for shown in (0, 1)]
    >>> [sample_capacity(table, pack_size=100, placeholder=30) for table in tables]
    [70, 100]
    """
    shows_nothing = (table.tokens > 0) & (table.images == 0) & (table.videos == 0)
    if truncating:
        shows_nothing |= table.tokens > pack_size - placeholder
    if not placeholder or not np.any(shows_nothing):
        return pack_size
    if placeholder >= pack_size:
        raise ConfigError(
            found=f"pack_size {pack_size} with placeholder_media, whose picture takes {placeholder} tokens",
            wanted="space for samples beside it",
            consequence="nothing could be packed",
            where="Loader",
        )
    return pack_size - placeholder
