"""What transformers would make a mask of → where documents begin, in a time that grows with the row and not its square.

A mask function says of any two places whether one sees the other. Documents side by side, in rows that may be padded,
are known from neighbours alone: a token that does not see the one before it begins a document. A pattern that is no
such thing (pictures seen both ways, holes in a row, a cache) goes the dense way, as `sdpa` has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

Sees = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(row, head, place of the one who looks, place that is looked at) → whether it is seen."""


def row_boundaries(rows: int, length: int, device: torch.device | str = "cpu") -> Tensor:
    """The boundaries of rows that hold one document each.

    >>> row_boundaries(2, 5).tolist()
    [0, 5, 10]
    """
    return torch.arange(0, (rows + 1) * length, length, dtype=torch.int32, device=device)


def find_boundaries(
    sees: Sees, padding: Tensor | None, *, rows: int, length: int, device: Any = "cpu"
) -> Tensor | None:
    """The boundaries [N + 1] of the documents of all rows, laid end to end; `None` where they are not what says it all.

    `padding` [B, S] is true where there is a token.

    >>> sees = lambda row, head, place, seen: (seen <= place) & (seen // 2 == place // 2)
    >>> find_boundaries(sees, None, rows=1, length=5)
    tensor([0, 2, 4, 5], dtype=torch.int32)
    """
    row, head = torch.arange(rows, device=device)[:, None], torch.zeros(1, 1, dtype=torch.long, device=device)
    places = torch.arange(1, length, device=device)[None]
    begins = torch.ones(rows, length, dtype=torch.bool, device=device)
    begins[:, 1:] = ~sees(row, head, places, places - 1)
    unlike = sees(row, head, places - 1, places).any()
    if padding is not None:
        there = padding.to(device=device, dtype=torch.bool)
        begins[:, 1:] |= there[:, 1:] != there[:, :-1]
        runs = (there[:, 1:] & ~there[:, :-1]).sum(-1) + there[:, 0]
        unlike = unlike | (runs > 1).any()
    if bool(unlike):
        return None
    return pad(begins.flatten().nonzero().flatten(), (0, 1), value=rows * length).to(torch.int32)


def boundaries_or_mask(batch_size: int, q_length: int, kv_length: int, **rest: Any) -> Tensor | None:
    """What transformers hands to attention in place of a mask: nothing for plain rows, boundaries [N + 1] for documents
    and padding, and for everything else the dense mask [B, 1, S, S] of `sdpa`.
    """
    from transformers.masking_utils import causal_mask_function, sdpa_mask

    padding = rest.get("attention_mask")
    same = q_length == kv_length and not rest.get("use_vmap", False)
    if same and padding is None and rest.get("allow_is_causal_skip", True):
        return None
    if same and (padding is None or padding.shape == (batch_size, kv_length)):
        boundaries = find_boundaries(
            rest.get("mask_function", causal_mask_function),
            padding,
            rows=batch_size,
            length=q_length,
            device=rest.get("device", "cpu"),
        )
        if boundaries is not None:
            return boundaries
    dense: Tensor | None = sdpa_mask(batch_size=batch_size, q_length=q_length, kv_length=kv_length, **rest)
    return dense
