"""The model that documents are fed to, and what it makes of them: positions, last hidden states, and losses.

Logits are made for the tokens that are trained on and for no others, a share at a time: of a real vocabulary, those of
one pack would fill gigabytes. What a token's logits are follows from its last hidden state alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lading import toy
from lading.addresses import refuse_address
from lading.encode.processor_facts import ProcessorFacts
from lading.errors import ConfigError, LadingError
from lading.family import Family
from lading.progress import bars_like_ours, task

SMALL = "small"
WEIGHT_SCALE = 4.0
"""What the weights of a small model are multiplied by."""
CAUSAL_TOWERS = ("phi4_mm",)
"""Families whose vision tower in transformers 5.22 is causal under sdpa for pictures without padding, so that a picture
depends on those beside it: the model's own effect, which `eager` does not have."""
TRAINED_PART = {"Qwen3OmniMoeForConditionalGeneration": "Qwen3OmniMoeThinkerForConditionalGeneration"}
"""Of a model that also speaks, the part that is fed and trained: its class finds its own weights among all of them."""
LOGITS = 100_000_000
"""Numbers of one share of logits: 400 MB."""

REFUSALS = (ValueError, RuntimeError, TypeError, IndexError, KeyError, AttributeError, AssertionError)
"""What models raise about inputs they do not take."""


def load_model(name: str, facts: ProcessorFacts) -> Any:
    """`small`, or the folder or hub id of a real model: in float32, on a GPU where there is one."""
    with task("loading the model"):
        model = small_model(facts) if name == SMALL else _real_model(name, facts.family)
    if facts.family.name in CAUSAL_TOWERS:
        model.set_attn_implementation({"": "sdpa", "vision_config": "eager"})
    return model.eval()


def small_model(facts: ProcessorFacts) -> Any:
    """A small model of the family's own class that fits the processor: no weights are downloaded."""
    name = facts.family.name
    if name not in toy.recipes():
        raise ConfigError(
            found=f"no small model for {facts.family.title}",
            wanted="--model PATH, a folder or hub id of the model to train",
            consequence="without a model neither positions nor losses can be compared",
        )
    return with_large_weights(toy.fitted(name, facts.processor))


def with_large_weights(model: Any) -> Any:
    """The model with its weights multiplied, so that a leak between documents shows in its outputs."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(WEIGHT_SCALE)
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
    return getattr(transformers, TRAINED_PART.get(known[0], known[0]) if known else "AutoModelForImageTextToText")


class Refused(LadingError):
    """The model does not take these inputs."""


@dataclass(kw_only=True, slots=True)
class ForwardPass:
    """What hooks recorded of one forward pass."""

    hidden: Tensor
    """[B, S, D]: the last hidden states."""
    positions: Tensor | None
    """What the language model was handed as positions; `None`: it counts by itself, 0, 1, 2, …"""
    logits: Tensor
    """[N, V]: of the tokens that were asked for."""


@torch.no_grad()
def run(model: Any, inputs: Mapping[str, Any], tokens: Tensor | None = None) -> ForwardPass:
    """One forward pass; `tokens` [N] are places in the flattened [B, S] whose logits are wanted (by default one)."""
    device = model.device
    wanted = torch.zeros(1, dtype=torch.long) if tokens is None else tokens
    moved = {
        name: _moved(value, device)
        for name, value in inputs.items()
        if name not in ("labels", "shift_labels")  # the model's own loss would want all logits
    }
    with _recorded(model, wanted.to(device)) as recorded:
        try:
            logits = model(**moved).logits
        except REFUSALS as error:
            message = " ".join(str(error).split())[:160]
            raise Refused(
                found=f"inputs that {type(model).__name__} refuses ({type(error).__name__}: {message})"
            ) from error
    return ForwardPass(hidden=recorded["hidden"], positions=recorded.get("positions"), logits=logits[0].float())


def _moved(value: Any, device: torch.device) -> Any:
    """A tensor, or the masks of several kinds of layers, where the model is; anything else as it is."""
    if isinstance(value, Mapping):
        return {name: tensor.to(device) for name, tensor in value.items()}
    return value.to(device) if isinstance(value, Tensor) else value


def token_losses(
    model: Any, inputs: Mapping[str, Any], places: Sequence[int], labels: Sequence[int]
) -> tuple[Tensor, ForwardPass]:
    """The losses of these labels, predicted at these places of the flattened [B, S], and the forward pass."""
    share = max(1, LOGITS // model.get_output_embeddings().weight.shape[0])
    forward = run(model, inputs, torch.tensor(places[:share]))
    losses = _losses(forward, labels[:share])
    for start in range(share, len(places), share):
        more = run(model, inputs, torch.tensor(places[start : start + share]))
        losses += _losses(more, labels[start : start + share])
    return torch.tensor(losses, dtype=torch.float64), forward


def _losses(forward: ForwardPass, labels: Sequence[int]) -> list[float]:
    wanted = torch.tensor(labels, device=forward.logits.device, dtype=torch.long)
    losses: list[float] = cross_entropy(forward.logits, wanted, reduction="none").tolist()
    return losses


@contextmanager
def _recorded(model: Any, wanted: Tensor) -> Iterator[dict[str, Tensor]]:
    """Hooks that record positions and hidden states, and hand only the wanted tokens on to the logits."""
    recorded: dict[str, Tensor] = {}

    def record_positions(module: Any, values: Any, named: dict[str, Any]) -> None:
        del module, values
        if isinstance(named.get("position_ids"), Tensor):
            recorded["positions"] = named["position_ids"]

    def keep_wanted(module: Any, values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        del module
        recorded["hidden"] = values[0]
        return (values[0].flatten(0, 1)[wanted][None], *values[1:])

    hooks = [
        model.get_decoder().register_forward_pre_hook(record_positions, with_kwargs=True),
        model.get_output_embeddings().register_forward_pre_hook(keep_wanted),
    ]
    try:
        yield recorded
    finally:
        for hook in hooks:
            hook.remove()
