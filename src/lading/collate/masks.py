"""Who may see whom, from document ids. Only the dense mask is quadratic, and nothing makes it unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


def block_causal(document_ids: Tensor) -> Tensor:
    """[B, S] document ids → [B, 1, S, S] bool: same document, and not from the future. Padding sees only itself.

    >>> block_causal(torch.tensor([[1, 1, 2, 0]]))[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    same = document_ids[:, :, None] == document_ids[:, None, :]
    return torch.tril(same)[:, None]


def additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A bool mask as numbers to add to the scores: 0 where seen, the dtype's minimum where not.

    `eager` attention adds its mask; a bool mask there is silently wrong.
    """
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


def cumulative_lengths(document_ids: Tensor) -> Tensor:
    """[S] document ids → the borders between documents, as variable-length attention wants them.

    >>> cumulative_lengths(torch.tensor([1, 1, 2, 0, 0])).tolist()
    [0, 2, 3, 5]
    """
    borders = torch.nonzero(torch.diff(document_ids)).flatten() + 1
    ends = torch.tensor([len(document_ids)], device=document_ids.device)
    return torch.cat([torch.zeros_like(ends), borders, ends]).to(torch.int32)


def flex_mask(document_ids: Tensor) -> BlockMask:
    """[B, S] document ids → the block mask of `flex_attention`: only blocks that hold something are ever computed."""
    from torch.nn.attention.flex_attention import create_block_mask

    def sees(row: Tensor, head: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        del head
        same = document_ids[row, query] == document_ids[row, seen]
        return same & (query >= seen)

    rows, length = document_ids.shape
    return create_block_mask(sees, rows, None, length, length, device=str(document_ids.device))
