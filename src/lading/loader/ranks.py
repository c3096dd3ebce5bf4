"""Which share of the data this process trains on, and which processes train together.

Ranks that hold parts of one model (tensor, pipeline or context parallel) must be fed the same batches; only those along
the data dimensions of a mesh are fed others. torch's group of all processes does not tell the two apart, so it is asked
for only where nothing else was given:

    mesh      the data dimensions, by their names:      dp_replicate 2 × dp_shard 2 × tp 2  →  4 shares, each fed twice
    group     the ranks of a process group, a share each
    neither   the ranks of the default group, a share each

Each rank counts and plans for itself. A picture that one of them could not read for a moment would give it other packs:
samples trained on twice or never, and ranks out of step. So every process writes into the process group's store what it
planned, and looks at what the others wrote by then (`Agreement`). Nobody waits for anybody: whoever comes last has seen
all. Ranks make their loaders in the same order, so each is known by its number: those of training and of validation
data may be alike in everything but their lengths.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

import torch.distributed as distributed

from lading import plain
from lading.errors import ConfigError
from lading.plan.fingerprint import DIGESTS, made_of, plan_fingerprint
from lading.private_names import default_store, process_groups, root_mesh
from lading.records import PackPlan

logger = logging.getLogger(__name__)

DATA_DIMS: Final = (
    "dp",
    "ddp",
    "data",
    "data_parallel",
    "dp_replicate",
    "dp_shard",
    "replicate",
    "shard",
    "fsdp",
    "hsdp",
)
"""Names of a mesh's dimensions along which ranks are fed different data: torch's, torchtitan's, Accelerate's."""
OTHER_DIMS: Final = (
    "tp",
    "pp",
    "cp",
    "sp",
    "ep",
    "etp",
    "tensor",
    "pipeline",
    "context",
    "sequence",
    "expert",
    "model",
)
"""Names of dimensions along which ranks hold parts of one model, and are fed the same."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ranks:
    """This process among those that train together. Law: processes of one `rank` are fed the same batches."""

    rank: int = 0
    world_size: int = 1
    peers: tuple[int, ...] = ()
    """The global ranks of all processes that make this loader, in their order; none where there is no process group, or
    where the share was given by hand and is none of its ranks'."""
    group: Any = None
    """The process group of the peers; `None`: the default one."""

    def __reduce__(self) -> tuple[object, ...]:
        # A group cannot leave its process, and whoever reads this elsewhere is none of the peers.
        return (_alone, (self.rank, self.world_size))

    @property
    def process(self) -> int:
        """The number of this process among all, of which the first may speak for the others."""
        import torch.distributed as distributed

        return distributed.get_rank() if self.peers and distributed.is_initialized() else self.rank


def _alone(rank: int, world_size: int) -> Ranks:
    return Ranks(rank=rank, world_size=world_size)


def find_ranks(
    rank: int | None = None,
    world_size: int | None = None,
    *,
    mesh: Any = None,
    group: Any = None,
    data_dims: Sequence[str] | None = None,
) -> Ranks:
    """This process's share: as it is given, by the mesh or the group; else by the default group; else all of it."""
    by_hand = rank is not None or world_size is not None
    if sum((by_hand, mesh is not None, group is not None)) > 1:
        raise ConfigError(
            found="more than one of mesh, group, and rank with world_size",
            wanted="one of them",
            consequence="they may say different things of this process's share",
            where="Loader",
        )
    if data_dims is not None and mesh is None:
        raise ConfigError(found="data_dims without a mesh", wanted="mesh= beside it", where="Loader")
    if mesh is not None:
        return _of_mesh(mesh, data_dims)
    if group is not None:
        return _of_group(group)
    if by_hand:
        return _by_hand(rank or 0, 1 if world_size is None else world_size)
    return _of_all()


def _by_hand(rank: int, world_size: int) -> Ranks:
    import torch.distributed as distributed

    # They may be those of the process group, of a part of it, or made up: only the first can be compared.
    running = distributed.is_available() and distributed.is_initialized()
    same = running and world_size > 1 and distributed.get_world_size() == world_size
    return Ranks(rank=rank, world_size=world_size, peers=tuple(range(world_size)) if same else ())


def _of_all() -> Ranks:
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        size = distributed.get_world_size()
        if size > 1 and _has_subgroups():
            logger.warning(
                "there are process groups besides the default one, as tensor, pipeline or context parallelism makes"
                " them, and none was named: each of all %d ranks gets a share of the data of its own. Where some must"
                " get the same, say mesh= or group=; rank= and world_size= say that this is meant",
                size,
            )
        return Ranks(rank=distributed.get_rank(), world_size=size, peers=tuple(range(size)))
    started = os.environ.get("WORLD_SIZE", "1")
    if started not in ("", "1"):
        raise ConfigError(
            found=f"WORLD_SIZE={started} and no process group",
            wanted="torch.distributed.init_process_group first, or rank= and world_size=",
            consequence="every rank would train on everything",
        )
    return Ranks()


def _has_subgroups() -> bool:
    """Whether there are groups of some of the ranks, as meshes of several dimensions make them."""
    import torch.distributed as distributed

    # Copies of the whole group, DeepSpeed's, say nothing.
    return any(1 < group.size() < distributed.get_world_size() for group in process_groups())


def _of_group(group: Any) -> Ranks:
    import torch.distributed as distributed

    try:
        rank = distributed.get_rank(group)
    except (ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            found=f"{group!r} as group ({' '.join(str(error).split())[:120]})",
            wanted="a process group that there is: torch.distributed.new_group(…), or mesh.get_group(…)",
            where="Loader(group=…)",
        ) from error
    if rank < 0:
        raise ConfigError(
            found=f"a group without this process (global rank {distributed.get_rank()})",
            wanted="one that it is a member of",
            consequence="it would have no share",
            where="Loader(group=…)",
        )
    peers = tuple(distributed.get_process_group_ranks(group))
    return Ranks(rank=rank, world_size=distributed.get_world_size(group), peers=peers, group=group)


def _of_mesh(mesh: Any, data_dims: Sequence[str] | None) -> Ranks:
    if not hasattr(mesh, "get_coordinate"):
        raise ConfigError(found=f"a {type(mesh).__name__} as mesh", wanted="torch's DeviceMesh", where="Loader(mesh=…)")
    place = mesh.get_coordinate()
    if place is None:
        raise ConfigError(found="a mesh without this process", wanted="one that it is in", where="Loader(mesh=…)")
    sizes = tuple(mesh.shape)
    data = _data_dimensions(mesh.mesh_dim_names, len(sizes), data_dims)
    shares = math.prod(sizes[dim] for dim in data)
    if data_dims is None and (not data or shares < _shares_of_whole(mesh)):
        _refuse_part(mesh)
    rank = 0
    for dim in data:
        rank = rank * sizes[dim] + place[dim]
    return Ranks(
        rank=rank,
        world_size=shares,
        peers=tuple(sorted(mesh.mesh.flatten().tolist())),
        group=mesh.get_group() if len(sizes) == 1 else None,
    )


def _refuse_part(mesh: Any) -> None:
    """Refuse a mesh of some of the processes beside whom others would train on the same data: `mesh["tp"]` in place of
    `mesh`, or `mesh["dp_shard"]` of one that has `dp_replicate`.
    """
    import torch.distributed as distributed

    there = distributed.get_world_size()
    if mesh.mesh.numel() < there:
        raise ConfigError(
            found=f"a mesh of {', '.join(mesh.mesh_dim_names)} alone, of {mesh.mesh.numel()} of {there} processes",
            wanted="the whole mesh, or all of its data dimensions (data_dims= says that those named are all, and"
            " data_dims=() that all get the same)",
            consequence="every such part would train on all of the data, the same as the others",
            where="Loader(mesh=…)",
        )


def _shares_of_whole(mesh: Any) -> int:
    """Into how many shares the mesh divides the data that this one was cut out of, as far as its names tell."""
    whole = root_mesh(mesh)
    named = zip(whole.mesh_dim_names or (), whole.shape, strict=False)
    return math.prod(size for name, size in named if name in DATA_DIMS)


def _data_dimensions(names: Sequence[str] | None, count: int, asked: Sequence[str] | None) -> list[int]:
    """Which dimensions of a mesh are those of the data; one name alone will do, as for torch."""
    asked = (asked,) if isinstance(asked, str) else asked
    if names is None:
        if count == 1 and asked is None:
            return [0]
        raise ConfigError(
            found=f"a mesh of {count} dimensions without names",
            wanted="init_device_mesh(…, mesh_dim_names=…), or the part of it along which data differ",
            where="Loader(mesh=…)",
        )
    wanted = tuple(asked) if asked is not None else DATA_DIMS
    strange = sorted(set(wanted) - set(names)) if asked is not None else []
    if asked is None:
        strange = [name for name in names if name not in (*DATA_DIMS, *OTHER_DIMS)]
    if strange:
        raise ConfigError(
            found=f"dimensions {', '.join(strange)} " + ("that the mesh lacks" if asked is not None else "in a mesh"),
            wanted=f"data_dims= of {', '.join(names)}: those along which ranks get different data",
            consequence="ranks that hold parts of one model would get different data, or all ranks the same",
            where="Loader(mesh=…)",
        )
    return [dim for dim, name in enumerate(names) if name in wanted]


_NUMBERS: defaultdict[tuple[int, ...], count[int]] = defaultdict(count)
"""How many loaders this process has made together with the same others."""


class Agreement:
    """What the loaders of one number say to each other, a loader in each process that trains along."""

    def __init__(self, ranks: Ranks) -> None:
        self._peers = ranks.peers
        self._number: int | None = None

    def on(self, plan: PackPlan) -> None:
        """Say what this process planned; raise where another planned something else."""
        if len(self._peers) > 1 and distributed.is_initialized():
            # Only now: a loader that one rank makes for itself is none of theirs.
            self._number = next(_NUMBERS[self._peers]) if self._number is None else self._number
            _agree(plan, self._peers, self._number)


def _agree(plan: PackPlan, peers: tuple[int, ...], number: int) -> None:
    own, facts, here = plan_fingerprint(plan), made_of(plan), distributed.get_rank()
    asked = {name: value for name, value in facts.items() if name not in DIGESTS}
    name = f"lading/{plain.digest({'peers': peers})}/{number}/{plan.epoch}/{json.dumps(asked)}"
    store = default_store()
    store.set(f"{name}/{here}", json.dumps({"plan": own, "made_of": facts}))
    for other in peers:
        if other == here or not store.check([f"{name}/{other}"]):
            continue
        said = json.loads(store.get(f"{name}/{other}"))
        if said["plan"] != own:
            differs = [fact for fact, value in facts.items() if said["made_of"][fact] != value] or ["packs"]
            raise ConfigError(
                found=f"another plan on rank {other} than on rank {here} ({', '.join(differs)})",
                wanted="the same corpus, media and configuration on every rank",
                consequence="samples would be trained on twice or never, and ranks would fall out of step",
                where="Loader",
            )
