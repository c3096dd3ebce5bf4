"""Feed-forwards of a width that is no multiple of eight, computed at the next one that is.

A GPU multiplies matrices by its fast kernels only where their widths are multiples of eight. The vision tower of
Qwen2.5-VL has feed-forwards of 3420: a fifth of a training step went into that. Here the weights get a few columns of
zeros while they are used, and only then: what is stored, saved and trained is as it was, and so is what comes out.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from torch import Tensor, nn
from torch.nn.functional import linear, pad

MULTIPLE: Final = 8
PARTS: Final = ("gate_proj", "up_proj", "down_proj")


def align_feed_forward(model: Any) -> int:
    """Let a model compute its gated feed-forwards at the next width that is a multiple of eight; how many there are.

    >>> from torch import nn
    >>> align_feed_forward(nn.Linear(3, 5))
    0
    """
    unaligned = [module for module in model.modules() if _is_unaligned(dict(module.named_children()))]
    for module in unaligned:
        module.forward = partial(_aligned, module)
    return len(unaligned)


def _aligned(module: nn.Module, hidden: Tensor) -> Tensor:
    """The layers are looked up at every call: LoRA may have replaced one since, and must take part."""
    children: dict[str, Any] = dict(module.named_children())
    if _is_unaligned(children):
        return _forward(hidden, **children)
    own: Tensor = type(module).forward(module, hidden)
    return own


def _is_unaligned(children: dict[str, nn.Module]) -> bool:
    # Wrapped layers (LoRA) are no plain `Linear`: they are left as they are.
    plain = [part for name in PARTS if isinstance(part := children.get(name), nn.Linear) and type(part) is nn.Linear]
    return set(children) == {*PARTS, "act_fn"} and len(plain) == len(PARTS) and plain[0].out_features % MULTIPLE != 0


def _forward(
    hidden: Tensor, *, gate_proj: nn.Linear, up_proj: nn.Linear, down_proj: nn.Linear, act_fn: nn.Module
) -> Tensor:
    more = -gate_proj.out_features % MULTIPLE
    gate = linear(hidden, pad(gate_proj.weight, (0, 0, 0, more)), _wider(gate_proj.bias, more))
    up = linear(hidden, pad(up_proj.weight, (0, 0, 0, more)), _wider(up_proj.bias, more))
    return linear(act_fn(gate) * up, pad(down_proj.weight, (0, more)), down_proj.bias)


def _wider(bias: Tensor | None, more: int) -> Tensor | None:
    return None if bias is None else pad(bias, (0, more))
