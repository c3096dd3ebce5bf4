"""The embedded default: small but real processors, models and data, made on the spot, offline.

    processor("qwen2_5_vl")   transformers' own processor class over a BPE tokenizer trained here
    model("qwen2_5_vl", …)    transformers' own model class, small, with random weights
    fitted("qwen2_5_vl", p)   the same for a processor of your own
    write_corpus(folder)      drawn pictures, an encoded clip, text-only conversations, several turns

`--processor toy:qwen2_5_vl`, the demo and the tests use it. Nothing is downloaded and nothing copied is shipped.
`corpus` is the data and its texts, `parts` what all toys are made of; the other files are the families' toys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from lading.errors import UnknownName
from lading.toy import gemma, internvl, kimi, llava_onevision, phi4_mm, qwen, smolvlm, step3p7
from lading.toy.corpus import write_corpus

__all__ = ["PREFIX", "fitted", "model", "processor", "recipes", "write_corpus"]

PREFIX = "toy:"
"""What the name of a toy's processor begins with where a folder or a hub id may stand, too."""

_RECIPES: Mapping[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "gemma3": (gemma.gemma3_processor, gemma.gemma3_model),
    "gemma4": (gemma.gemma4_processor, gemma.gemma4_model),
    "internvl": (internvl.internvl_processor, internvl.internvl_model),
    "kimi_k25": (kimi.kimi_k25_processor, kimi.kimi_k25_model),
    "kimi_vl": (kimi.kimi_vl_processor, kimi.kimi_vl_model),
    "llava_onevision": (llava_onevision.llava_onevision_processor, llava_onevision.llava_onevision_model),
    "phi4_mm": (phi4_mm.phi4_mm_processor, phi4_mm.phi4_mm_model),
    "qwen2_5_vl": (qwen.qwen2_5_vl_processor, qwen.qwen2_5_vl_model),
    "qwen3_omni": (qwen.qwen3_omni_processor, qwen.qwen3_omni_model),
    "qwen3_vl": (qwen.qwen3_vl_processor, qwen.qwen3_vl_model),
    "smolvlm": (smolvlm.smolvlm_processor, smolvlm.smolvlm_model),
    "step3p7": (step3p7.step3p7_processor, step3p7.step3p7_model),
}
"""For every family of our own, what makes its processor, and a model that fits a processor."""


def recipes() -> tuple[str, ...]:
    """The families that have a toy: all of our own."""
    return tuple(_RECIPES)


def _recipe(name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    if name not in _RECIPES:
        raise UnknownName(kind="toy", name=name, known=recipes())
    return _RECIPES[name]


@cache
def processor(name: str) -> Any:
    """The toy processor of a family. Made once; treat it as frozen."""
    make_processor, _ = _recipe(name)
    return make_processor()


def model(name: str, *, seed: int = 0) -> Any:
    """A small model of a family, with random weights drawn from `seed`; the global generator is left as it was."""
    return fitted(name, processor(name), seed=seed)


def fitted(name: str, processor: Any, *, seed: int = 0) -> Any:
    """The same for any processor of the family, a real one too: its vocabulary, its tokens, its tiles and patches."""
    import torch

    _, make_model = _recipe(name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make_model(processor)
