"""How many rows each microbatch gets: as `torch.distributed.pipelining` splits a batch, with `torch.tensor_split`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from lading.errors import ConfigError
from lading.fields import TOKEN_FIELDS


def piece_sizes(rows: int, pieces: int) -> list[int]:
    """`pieces` numbers that add up to `rows`; the first ones are one larger where it does not divide.

    >>> piece_sizes(7, 3)
    [3, 2, 2]
    """
    if not 1 <= pieces <= rows:
        raise ConfigError(
            found=f"{pieces} microbatches of {rows} rows",
            wanted=f"1 to {rows}" if rows else "at least one row",
            where="microbatches",
        )
    return [rows // pieces + (piece < rows % pieces) for piece in range(pieces)]


def piece_sums(numbers: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """One number for each row → their sum for each microbatch.

    >>> piece_sums([3, 1, 0, 0], [2, 2])
    [4, 0]
    """
    starts = [sum(sizes[:piece]) for piece in range(len(sizes))]
    return [sum(numbers[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def row_axes(batch: Mapping[str, Any]) -> dict[str, int]:
    """The axis on which each tensor of a batch has its rows, as `TensorChunkSpec.from_dict` wants it.

    Three-way positions [3, B, S] have them second. Split on the first axis, as torch does unless told, a microbatch
    would get a third of everybody's positions. The order is the batch's own: torch matches axes to inputs by order.

    >>> import torch
    >>> row_axes({"input_ids": torch.zeros(4, 9), "position_ids": torch.zeros(3, 4, 9)})
    {'input_ids': 0, 'position_ids': 1}
    """
    return {
        name: value.ndim - 2 if name in TOKEN_FIELDS else 0
        for name, value in batch.items()
        if isinstance(value, Tensor)
    }
