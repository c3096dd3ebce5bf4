"""Which rank this process is, asked of torch.distributed only where it is running."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lading.errors import ConfigError


def with_rank(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options with rank and world size: those given, else the process group's, else a single rank's."""
    if "rank" in options or "world_size" in options:
        return dict(options)
    rank, world_size = this_rank()
    return {"rank": rank, "world_size": world_size, **options}


def this_rank() -> tuple[int, int]:
    """(rank, world size) of the process group; (0, 1) where there is none and none was announced."""
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    started = os.environ.get("WORLD_SIZE", "1")
    if started not in ("", "1"):
        raise ConfigError(
            found=f"WORLD_SIZE={started} and no process group",
            wanted="torch.distributed.init_process_group first, or rank= and world_size=",
            consequence="every rank would train on everything",
        )
    return 0, 1
