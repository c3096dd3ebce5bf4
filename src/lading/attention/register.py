"""The name of our attention among transformers' implementations, and the choice of it for a model.

Two names stand for the one function. A vision tower of the Qwen-VL line makes one call for each window, hundreds of
small ones, unless the name of its implementation has "flash" in it: then it hands over all windows with their
boundaries.
A name that begins with `flash_attention_` would have transformers look for the flash-attn package; one that only ends
in "flash", set for a part of a model and not for the whole, does not.
"""

from __future__ import annotations

import inspect
from typing import Any, Final
from weakref import WeakSet

from lading.attention.boundaries import boundaries_or_mask
from lading.attention.varlen import varlen_attention
from lading.errors import ConfigError
from lading.fields import BOUNDARIES, LONGEST
from lading.private_names import attention_of

LANGUAGE: Final = "lading_varlen"
TOWER: Final = "lading_varlen_flash"
_hooked: WeakSet[Any] = WeakSet()
"""Towers that were told to leave out the boundaries of documents."""


def use_varlen(model: Any) -> dict[str, str]:
    """Let a transformers model attend document by document, and its vision tower window by window, without a mask.

    Returns what was set, by the part of the model's configuration ("" for the model itself). It fits batches of every
    kind: boundaries are taken from the batch (`attention="varlen"`), else found from its positions or its mask of ones
    and zeros; what boundaries cannot say (a dense mask, pictures seen both ways) is computed as `sdpa` does.

    >>> from lading import toy
    >>> use_varlen(toy.model("qwen2_5_vl"))
    {'vision_config': 'lading_varlen_flash', 'text_config': 'lading_varlen'}
    """
    _register()
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


def _register() -> None:
    from transformers import AttentionInterface, AttentionMaskInterface

    for name in (LANGUAGE, TOWER):
        AttentionInterface.register(name, varlen_attention)
        AttentionMaskInterface.register(name, boundaries_or_mask)


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
