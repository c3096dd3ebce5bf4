"""Our attention among transformers' implementations: its names, what stands in place of a mask, and its function.

A mask function says of any two places whether one sees the other. Documents side by side, in rows that may be padded,
are known from neighbours alone: a token that does not see the one before it begins a document. So boundaries are found
in a time that grows with the row and not with its square. A pattern that is no such thing (pictures seen both ways,
holes in a row, a cache) goes the dense way, as `sdpa` has it.

Two names stand for the one function. A vision tower of the Qwen-VL line makes one call for each window, hundreds of
small ones, unless the name of its implementation has "flash" in it: then it hands over all windows with their
boundaries. A name that begins with `flash_attention_` would have transformers look for the flash-attn package; one that
only ends in "flash", set for a part of a model and not for the whole, does not.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Final
from weakref import WeakSet

import torch
from torch import Tensor
from torch.nn.functional import pad

from lading.attention.segments import AttentionOptions, attend
from lading.errors import ConfigError
from lading.fields import BOUNDARIES, LONGEST
from lading.private_names import attention_of

LANGUAGE: Final = "lading_varlen"
TOWER: Final = "lading_varlen_flash"
_hooked: WeakSet[Any] = WeakSet()
"""Towers that were told to leave out the boundaries of documents."""
UNSUPPORTED = ("softcap", "s_aux", "position_bias")
"""What some models ask of their attention besides."""
Sees = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(row, head, place of the query, place of the key) → whether the key is seen."""


def use_varlen(model: Any) -> dict[str, str]:
    """Let a transformers model attend document by document, and its vision tower window by window, without a mask.

    Returns what was set, by the part of the model's configuration ("" for the model itself). It fits batches of every
    kind: boundaries are taken from the batch (`attention="varlen"`), else found from its positions or its mask of ones
    and zeros; what boundaries cannot say (a dense mask, pictures seen both ways) is computed as `sdpa` does.

    >>> from lading import toy
    >>> use_varlen(toy.model("qwen2_5_vl"))
    {'vision_config': 'lading_varlen_flash', 'text_config': 'lading_varlen'}
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    for name in (LANGUAGE, TOWER):
        AttentionInterface.register(name, varlen_attention)
        AttentionMaskInterface.register(name, boundaries_or_mask)
    language, parts = model.config.get_text_config(), _parts(model)
    chosen = {
        key: TOWER for key, (config, tower) in parts.items() if config is not language and _takes_boundaries(tower)
    }
    chosen[next((key for key, (config, _) in parts.items() if config is language), "")] = LANGUAGE
    model.set_attn_implementation(chosen)
    if attention_of(language) != LANGUAGE:
        raise ConfigError(
            found=f"{type(model).__name__}, whose attention is its own and cannot be chosen",
            wanted="a model on transformers' AttentionInterface",
            consequence="use attention='mask', which needs no other attention",
        )
    for module in (module for config, tower in parts.values() if config is not language for module in tower):
        if module not in _hooked:
            module.register_forward_pre_hook(_without_documents, with_kwargs=True)
            _hooked.add(module)
    return chosen


def _parts(model: Any) -> dict[str, tuple[Any, list[Any]]]:
    """The parts of a model's configuration, each with the modules that are built from it."""
    from transformers import PreTrainedModel

    configs = {key: model.config.__dict__.get(key) for key in model.config.sub_configs}
    built = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return {
        key: (config, [module for module in built if module.config is config])
        for key, config in configs.items()
        if config is not None
    }


def _takes_boundaries(tower: list[Any]) -> bool:
    """Whether the attention of a tower is given boundaries; one that is given batches of equal pictures has no need."""
    return any(
        "cu_seqlens" in inspect.signature(module.forward).parameters for part in tower for module in part.modules()
    )


def _without_documents(module: Any, values: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Some models pass what they do not know on to every part; a tower has boundaries of its own by those names."""
    del module
    return values, {name: value for name, value in named.items() if name not in (*BOUNDARIES, *LONGEST)}


def row_boundaries(rows: int, length: int, device: torch.device | str = "cpu") -> Tensor:
    """The boundaries of rows that hold one document each.

    >>> row_boundaries(2, 5).tolist()
    [0, 5, 10]
    """
    return torch.arange(0, (rows + 1) * length, length, dtype=torch.int32, device=device)


def find_boundaries(
    sees: Sees, padding: Tensor | None, *, rows: int, length: int, device: Any = "cpu"
) -> Tensor | None:
    """The boundaries [N + 1] of the documents of all rows, laid end to end; `None` where boundaries cannot say it.

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
    options = AttentionOptions(
        causal=module.is_causal if is_causal is None else is_causal,
        scale=scaling,
        window=sliding_window,
        dropout=dropout,
    )
    # No document is longer than its row; more than it needs costs the kernel nothing but empty blocks.
    longest = length if longest is None else int(longest)
    tensors = (_laid_out(tensor) for tensor in (query, key, value))
    return attend(*tensors, boundaries=boundaries, longest=longest, options=options).view(rows, length, heads, -1), None


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
