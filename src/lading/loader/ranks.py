"""Which rank this process is, asked of torch.distributed only where it is running."""

from __future__ import annotations


def this_rank() -> tuple[int, int]:
    """(rank, world size); (0, 1) outside a process group."""
    import torch.distributed as distributed

    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1
