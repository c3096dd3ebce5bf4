"""The attention function that transformers calls, layer by layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lading.attention.boundaries import row_boundaries
from lading.attention.segments import Looking, attend
from lading.errors import ConfigError

UNSUPPORTED = ("softcap", "s_aux", "position_bias")
"""What some models ask of their attention besides."""


def varlen_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    cu_seq_lens_q: Tensor | None = None,
    max_length_q: int | None = None,
    **rest: Any,
) -> tuple[Tensor, None]:
    """[B, H, S, D] queries, keys and values → [B, S, H, D].

    Who sees whom is said by the first of these that is there: a dense mask [B, 1, S, S]; boundaries that the batch or
    the vision tower hands over (`cu_seq_lens_q`, over all rows laid end to end); boundaries in place of a mask, as
    `boundaries_or_mask` makes them; else the rows are one document each.
    """
    boundaries, longest = cu_seq_lens_q, max_length_q
    by_boundaries = attention_mask is None or attention_mask.ndim == 1
    if boundaries is None and by_boundaries:
        boundaries = attention_mask
    rows, heads, length, _ = query.shape
    if not by_boundaries or (boundaries is None and (sliding_window is None or sliding_window >= length)):
        named = {"dropout": dropout, "scaling": scaling, "is_causal": is_causal, **rest}
        return _as_sdpa(module, query, key, value, attention_mask, **named)
    _refuse(module, rest, length=length, seen=key.shape[2])
    if boundaries is None:
        boundaries = row_boundaries(rows, length, query.device)
    looking = Looking(
        causal=module.is_causal if is_causal is None else is_causal,
        scale=scaling,
        window=sliding_window,
        dropout=dropout,
    )
    # No document is longer than its row; more than it needs costs the kernel nothing but empty blocks.
    longest = length if longest is None else int(longest)
    tensors = (_laid_out(tensor) for tensor in (query, key, value))
    return attend(*tensors, boundaries=boundaries, longest=longest, looking=looking).view(rows, length, heads, -1), None


def _as_sdpa(*values: Any, **named: Any) -> tuple[Tensor, None]:
    from transformers.integrations.sdpa_attention import sdpa_attention_forward

    result: tuple[Tensor, None] = sdpa_attention_forward(*values, **named)
    return result


def _laid_out(tensor: Tensor) -> Tensor:
    """[B, H, S, D] → [B · S, H, D], in the precision that autocast has for attention."""
    kind = tensor.device.type
    if tensor.is_cuda and torch.is_autocast_enabled(kind):
        tensor = tensor.to(torch.get_autocast_dtype(kind))
    return tensor.transpose(1, 2).flatten(0, 1)


def _refuse(module: Any, rest: dict[str, Any], *, length: int, seen: int) -> None:
    asked = [name for name in UNSUPPORTED if rest.get(name) is not None]
    if length != seen:
        asked.append(f"{length} tokens to look at {seen}, as with a cache")
    if asked:
        raise ConfigError(
            found=f"{type(module).__name__}, which asks its attention for {', '.join(asked)}",
            wanted="tokens that look at each other within boundaries, and nothing else",
            consequence="leave it on sdpa or eager, with attention='positions' or 'mask'",
            where="lading.attention",
        )
