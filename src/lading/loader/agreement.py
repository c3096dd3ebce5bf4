"""Whether the ranks of a run made the same plan.

Each rank counts and plans for itself. A picture that one of them could not read for a moment would give it other packs:
samples trained on twice or never, and ranks out of step. So every process says in the process group's store what it
planned and looks at what the others said by then. Nobody waits for anybody: whoever comes last has seen all.

Ranks make their loaders in the same order, so each is known by its number: those of training and of validation data
may be alike in everything that is said of them but their lengths.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import count

import torch.distributed as distributed

from lading import plain
from lading.errors import ConfigError
from lading.loader.ranks import Ranks
from lading.loader.state import DIGESTS, made_of
from lading.plan.fingerprint import plan_fingerprint
from lading.private_names import default_store
from lading.records import PackPlan

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
