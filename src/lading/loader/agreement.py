"""Whether the ranks of a run made the same plan.

Each rank counts and plans for itself. A picture that one of them could not read for a moment would give it other packs:
samples trained on twice or never, and ranks out of step. So every rank says in the process group's store what it
planned and looks at what the others said by then. Nobody waits for anybody: whoever comes last has seen all.

Ranks make their loaders in the same order, so each is known by its number: those of training and of validation data
may be alike in everything that is said of them but their lengths.
"""

from __future__ import annotations

import json
from itertools import count

import torch.distributed as distributed
from torch.distributed import distributed_c10d

from lading.errors import ConfigError
from lading.loader.config import LoaderConfig
from lading.loader.state import DIGESTS, made_of
from lading.plan.fingerprint import plan_fingerprint
from lading.records import PackPlan

_NUMBERS = count()


class Agreement:
    """What the ranks' loaders of one number say to each other."""

    def __init__(self) -> None:
        self._number: int | None = None

    def on(self, plan: PackPlan, config: LoaderConfig) -> None:
        """Say what this rank planned; raise where another planned something else."""
        if _in_group(config.world_size):
            # Only now: a loader that one rank makes for itself is none of theirs.
            self._number = next(_NUMBERS) if self._number is None else self._number
            _agree(plan, config, self._number)


def _agree(plan: PackPlan, config: LoaderConfig, number: int) -> None:
    own, facts = plan_fingerprint(plan), made_of(plan)
    asked = {name: value for name, value in facts.items() if name not in DIGESTS}
    name = f"lading/{number}/{plan.epoch}/{json.dumps(asked)}"
    # torch has no public way to the store that every process group brings along.
    store = distributed_c10d._get_default_store()
    store.set(f"{name}/{config.rank}", json.dumps({"plan": own, "made_of": facts}))
    for other in range(config.world_size):
        if other == config.rank or not store.check([f"{name}/{other}"]):
            continue
        said = json.loads(store.get(f"{name}/{other}"))
        if said["plan"] != own:
            differs = [fact for fact, value in facts.items() if said["made_of"][fact] != value] or ["packs"]
            raise ConfigError(
                found=f"another plan on rank {other} than on rank {config.rank} ({', '.join(differs)})",
                wanted="the same corpus, media and configuration on every rank",
                consequence="samples would be trained on twice or never, and ranks would fall out of step",
                where="Loader",
            )


def _in_group(world_size: int) -> bool:
    """Whether the ranks are those of a process group; they may also be those of a part of one, or made up."""
    running = distributed.is_available() and distributed.is_initialized()
    return running and world_size > 1 and distributed.get_world_size() == world_size
