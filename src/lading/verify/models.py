"""The model that documents are fed to, packed and alone."""

from __future__ import annotations

from typing import Any

import torch

from lading import toy
from lading.addresses import refuse_address
from lading.errors import ConfigError
from lading.family import Family
from lading.loader import ProcessorFacts
from lading.progress import bars_like_ours, task

SMALL = "small"
LOUDNESS = 4.0
CAUSAL_TOWERS = ("phi4_mm",)
"""Families whose vision tower in transformers 5.22 is causal under sdpa for pictures without padding, so that a picture
depends on those beside it: the model's own effect, which `eager` does not have."""
FED = {"Qwen3OmniMoeForConditionalGeneration": "Qwen3OmniMoeThinkerForConditionalGeneration"}
"""Of a model that also speaks, the part that is fed and trained: its class finds its own weights among all of them."""


def load_model(name: str, facts: ProcessorFacts) -> Any:
    """`small`, or the folder or hub id of a real model: in float32, on a GPU where there is one."""
    with task("loading the model"):
        model = small_model(facts) if name == SMALL else _real_model(name, facts.family)
    if facts.family.name in CAUSAL_TOWERS:
        model.set_attn_implementation({"": "sdpa", "vision_config": "eager"})
    return model.eval()


def small_model(facts: ProcessorFacts) -> Any:
    """A small, loud model of the family's own class that fits the processor: no weights are needed, and none help."""
    name = facts.family.name
    if name not in toy.recipes():
        raise ConfigError(
            found=f"no small model for {facts.family.title}",
            wanted="--model PATH, a folder or hub id of the model to train",
            consequence="without a model neither positions nor losses can be compared",
        )
    return loud(toy.fitted(name, facts.processor))


def loud(model: Any) -> Any:
    """Large weights, so that a leak between documents shows in what the model says."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(LOUDNESS)
    return model.eval()


def _real_model(name: str, family: Family) -> Any:
    refuse_address(name, wanted="a model")
    from transformers.utils import logging as bars

    switches = (bars.is_progress_bar_enabled, bars.disable_progress_bar, bars.enable_progress_bar)
    try:
        with bars_like_ours(*switches):
            model = _model_class(name, family).from_pretrained(name, dtype=torch.float32)
    except (OSError, ValueError, KeyError, ImportError, RuntimeError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ConfigError(
            found=f"{name!r}, which transformers cannot load as a model ({first_line})",
            wanted=f"{SMALL!r}, a model folder or a hub id",
            consequence="nothing was compared",
        ) from error
    return model.to("cuda" if torch.cuda.is_available() else "cpu")


def _model_class(name: str, family: Family) -> Any:
    """The class that the checkpoint says it is, if the family feeds it: transformers' own table of classes for pictures
    and text lacks those that hear as well. Of any other checkpoint, what that table says.
    """
    import transformers

    stated, _ = transformers.PreTrainedConfig.get_config_dict(name)
    known = [
        kind for kind in stated.get("architectures") or () if kind in family.models and hasattr(transformers, kind)
    ]
    return getattr(transformers, FED.get(known[0], known[0]) if known else "AutoModelForImageTextToText")
