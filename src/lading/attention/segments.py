"""Attention within the pieces of one long row: by torch's variable-length kernel, or one by one where it does not fit.

>>> row, options = torch.randn(5, 2, 8), AttentionOptions()
>>> together = attend(row, row, row, boundaries=torch.tensor([0, 3, 5]), longest=3, options=options)
>>> alone = attend(row[3:], row[3:], row[3:], boundaries=torch.tensor([0, 2]), longest=2, options=options)
>>> torch.equal(together[3:], alone)
True
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

from lading.fields import Field
from lading.tensors import cut, join

WIDEST_HEAD: Final = 256
"""torch's flash kernels take heads of at most this size, in steps of eight, in half precision."""
_TOKENS: Final = {"seen": Field(axis="token")}


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionOptions:
    """Which of the others of its piece a token attends to, and how."""

    causal: bool = True
    scale: float | None = None
    """What scores are multiplied by; one over the root of the head's size, if nothing is said."""
    window: int | None = None
    """A token sees itself and the `window - 1` before it."""
    dropout: float = 0.0


def attend(
    query: Tensor, key: Tensor, value: Tensor, *, boundaries: Tensor, longest: int, options: AttentionOptions
) -> Tensor:
    """[T, H, D] queries, [T, K, D] keys and values of as many or fewer heads → [T, H, D].

    `boundaries` [N + 1] is where the pieces begin, and the end; none is longer than `longest`.
    """
    kernel = _kernel()
    if kernel is None or not _fits(query, options):
        return _one_by_one(query, key, value, boundaries, options)
    tensors, arguments = kernel_call(query, key, value, options)
    boundaries = boundaries.to(device=query.device, dtype=torch.int32)
    # The very same boundaries twice: that is how some of its backends know that queries and keys are of one length.
    seen: Tensor = kernel(*tensors, boundaries, boundaries, longest, longest, **arguments)
    return seen[..., : value.shape[-1]]


@cache
def _kernel() -> Callable[..., Any] | None:
    """torch's own; older ones have none."""
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    return varlen_attn


@cache
def _kernel_arguments() -> frozenset[str]:
    """What this torch's kernel can be asked for: a scale, windows and grouped heads came one after the other."""
    kernel = _kernel()
    return frozenset(inspect.signature(kernel).parameters) if kernel else frozenset()


def _fits(query: Tensor, options: AttentionOptions) -> bool:
    size = query.shape[-1]
    return (
        query.is_cuda
        and options.dropout == 0.0
        and query.dtype in (torch.float16, torch.bfloat16)
        and size % 8 == 0
        and size <= WIDEST_HEAD
        and (options.window is None or (options.causal and "window_size" in _kernel_arguments()))
        and torch.cuda.get_device_capability(query.device) >= (8, 0)
    )


def kernel_call(
    query: Tensor, key: Tensor, value: Tensor, options: AttentionOptions
) -> tuple[tuple[Tensor, Tensor, Tensor], dict[str, Any]]:
    """The tensors and arguments of one call, as this torch's kernel wants them."""
    known, arguments = _kernel_arguments(), dict[str, Any]()
    if "window_size" in known:
        left = -1 if options.window is None else options.window - 1
        arguments["window_size"] = (left, 0) if options.causal else (-1, -1)
    else:
        arguments["is_causal"] = options.causal
    if "scale" in known:
        arguments["scale"] = options.scale
    elif options.scale is not None:
        query = query * (options.scale * math.sqrt(query.shape[-1]))
    groups = query.shape[1] // key.shape[1]
    if groups > 1 and "enable_gqa" in known:
        arguments["enable_gqa"] = True
    elif groups > 1:
        key, value = (tensor.repeat_interleave(groups, dim=1) for tensor in (key, value))
    # Latent attention has values narrower than its keys; the kernel wants one width.
    return (query, key, pad(value, (0, query.shape[-1] - value.shape[-1]))), arguments


def _one_by_one(query: Tensor, key: Tensor, value: Tensor, boundaries: Tensor, options: AttentionOptions) -> Tensor:
    sizes = [size for size in boundaries.diff().tolist() if size]
    pieces = []
    for queries, keys, values in zip(*(cut(tensor, sizes) for tensor in (query, key, value)), strict=True):
        mask = _window_mask(queries.shape[0], options, query.device)
        seen = scaled_dot_product_attention(
            _heads_first(queries),
            _heads_first(keys),
            _heads_first(values),
            attn_mask=mask,
            dropout_p=options.dropout,
            is_causal=options.causal and mask is None,
            scale=options.scale,
            enable_gqa=query.shape[1] != key.shape[1],
        )
        pieces.append({"seen": seen[0].transpose(0, 1)})
    return join(pieces, _TOKENS)["seen"]


def _heads_first(tensor: Tensor) -> Tensor:
    """[T, H, D] → [1, H, T, D]."""
    return tensor.transpose(0, 1)[None]


def _window_mask(length: int, options: AttentionOptions, device: torch.device) -> Tensor | None:
    """[T, T] bool within one piece, where it is longer than the window."""
    if options.window is None or options.window >= length:
        return None
    places = torch.arange(length, device=device)
    back = places[:, None] - places[None, :]
    return (back < options.window) & (back >= 0 if options.causal else back > -options.window)
