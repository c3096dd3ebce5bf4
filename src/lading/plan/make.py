"""The plan: a pure function of (lengths, config, seed, epoch)."""

from __future__ import annotations

import numpy as np

from lading.errors import ConfigError, UnknownName
from lading.plan.costs import pack_sums, sample_costs
from lading.plan.knapsack import ALGORITHMS
from lading.plan.order import order_packs
from lading.records import LengthTable, PackPlan

DEFAULT_ALGORITHM = "tight_fit"


def make_plan(
    table: LengthTable,
    *,
    pack_size: int,
    world_size: int = 1,
    seed: int = 0,
    epoch: int = 0,
    algorithm: str = DEFAULT_ALGORITHM,
) -> PackPlan:
    """Fill packs and place them on (step, rank). The same arguments always give the same plan.

    Samples are shuffled before they are packed, so that among those of one length others meet in every epoch.
    """
    _check(pack_size, world_size, seed, epoch, algorithm)
    tokens = table.tokens.astype(np.int64)
    random = np.random.default_rng([seed, epoch])
    usable = random.permutation(np.flatnonzero((tokens > 0) & (tokens <= pack_size)))
    bins = ALGORITHMS[algorithm](tokens[usable], pack_size)
    members = usable[bins.members]
    costs = pack_sums(sample_costs(table), members, bins.starts)
    order, repeated = order_packs(costs, world_size=world_size, random=random)
    return PackPlan(
        pack_size=pack_size,
        world_size=world_size,
        seed=seed,
        epoch=epoch,
        algorithm=algorithm,
        members=members,
        starts=bins.starts,
        tokens=pack_sums(tokens, members, bins.starts),
        order=order,
        repeated=repeated,
        too_long=np.flatnonzero(tokens > pack_size),
        uncounted=len(table.dropped),
    )


def _check(pack_size: int, world_size: int, seed: int, epoch: int, algorithm: str) -> None:
    if pack_size < 1:
        raise ConfigError(found=f"pack size {pack_size}", wanted="a positive number of tokens", where="plan")
    if world_size < 1:
        raise ConfigError(found=f"world size {world_size}", wanted="at least one rank", where="plan")
    if seed < 0 or epoch < 0:
        raise ConfigError(found=f"seed {seed}, epoch {epoch}", wanted="numbers from 0 up", where="plan")
    if algorithm not in ALGORITHMS:
        raise UnknownName(kind="packing algorithm", name=algorithm, known=ALGORITHMS, where="plan")
