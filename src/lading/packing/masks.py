"""Who may see whom, from document ids. Only the dense mask is quadratic, and nothing makes it unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from lading.family import LayerSight
from lading.fields import BOUNDARIES, LONGEST

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask


def block_causal(document_ids: Tensor) -> Tensor:
    """[B, S] document ids → [B, 1, S, S] bool: same document, and not from the future. Padding sees only itself.

    >>> block_causal(torch.tensor([[1, 1, 2, 0]]))[0, 0].int().tolist()
    [[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    """
    same = document_ids[:, :, None] == document_ids[:, None, :]
    return torch.tril(same)[:, None]


def sight(document_ids: Tensor, pictures: Tensor | None, layer: LayerSight) -> Tensor:
    """[B, S] document ids and picture numbers (0 for text) → [B, 1, S, S] bool: what each token sees in such a layer.

    >>> sight(torch.tensor([[1, 1, 1]]), torch.tensor([[0, 1, 1]]), LayerSight(both_ways=True))[0, 0].int().tolist()
    [[1, 0, 0], [1, 1, 1], [1, 1, 1]]
    """
    same = document_ids[:, :, None] == document_ids[:, None, :]
    seen = torch.tril(torch.ones_like(same))
    if layer.both_ways and pictures is not None:
        seen |= (pictures[:, :, None] == pictures[:, None, :]) & (pictures > 0)[:, :, None]
    if layer.window is not None:
        places = torch.arange(document_ids.shape[1], device=document_ids.device)
        seen &= places[None, :] > places[:, None] - layer.window
    return (same & seen)[:, None]


def picture_numbers(token_types: Tensor, document_ids: Tensor) -> Tensor:
    """[B, S] token types → a number for every run of picture tokens, 0 for everything else.

    A run ends where its document does, even where two pictures touch.

    >>> picture_numbers(torch.tensor([[0, 1, 1, 1]]), torch.tensor([[1, 1, 1, 2]])).tolist()
    [[0, 1, 1, 2]]
    """
    visual = (token_types == 1) | (token_types == 2)
    before = torch.roll(visual, 1, dims=-1) & (torch.roll(document_ids, 1, dims=-1) == document_ids)
    before[..., 0] = False
    return torch.where(visual, (visual & ~before).int().cumsum(-1), 0)


def additive(mask: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A bool mask as numbers to add to the scores: 0 where seen, the dtype's minimum where not.

    `eager` attention adds its mask; a bool mask there is silently wrong.
    """
    return torch.zeros(mask.shape, dtype=dtype).masked_fill_(~mask, torch.finfo(dtype).min)


def cumulative_lengths(document_ids: Tensor) -> Tensor:
    """[S] document ids → the boundaries between documents, as variable-length attention wants them.

    Of [B, S], those of all rows laid end to end; a row's padding is a document of its own.

    >>> cumulative_lengths(torch.tensor([1, 1, 2, 0, 0])).tolist()
    [0, 2, 3, 5]
    >>> cumulative_lengths(torch.tensor([[1, 1, 2], [2, 0, 0]])).tolist()
    [0, 2, 3, 4, 6]
    """
    if document_ids.ndim == 2:
        rows = torch.arange(len(document_ids), device=document_ids.device)[:, None]
        document_ids = (document_ids + rows * (document_ids.max() + 1)).flatten()
    boundaries = torch.nonzero(torch.diff(document_ids)).flatten() + 1
    ends = torch.tensor([len(document_ids)], device=document_ids.device)
    return torch.cat([torch.zeros_like(ends), boundaries, ends]).to(torch.int32)


def document_boundaries(document_ids: Tensor) -> dict[str, Tensor | int]:
    """The same under the names that transformers' attention takes, with the longest document's length."""
    boundaries = cumulative_lengths(document_ids)
    return {**dict.fromkeys(BOUNDARIES, boundaries), **dict.fromkeys(LONGEST, int(boundaries.diff().max()))}


def flex_mask(document_ids: Tensor) -> BlockMask:
    """[B, S] document ids → the block mask of `flex_attention`: only blocks that hold something are ever computed."""
    from torch.nn.attention.flex_attention import create_block_mask

    def sees(row: Tensor, head: Tensor, query: Tensor, seen: Tensor) -> Tensor:
        del head
        same = document_ids[row, query] == document_ids[row, seen]
        return same & (query >= seen)

    rows, length = document_ids.shape
    return create_block_mask(sees, rows, None, length, length, device=str(document_ids.device))
