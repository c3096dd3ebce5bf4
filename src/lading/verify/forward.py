"""What a model makes of its inputs: the positions it numbers tokens with, its last hidden states, and losses.

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

from lading.errors import LadingError

LOGITS = 100_000_000
"""Numbers of one share of logits: 400 MB."""

REFUSALS = (ValueError, RuntimeError, TypeError, IndexError, KeyError, AttributeError, AssertionError)
"""What models raise about inputs they do not take."""


class Refused(LadingError):
    """The model does not take these inputs."""


@dataclass(kw_only=True, slots=True)
class Seen:
    """What hooks saw of one forward pass."""

    hidden: Tensor
    """[B, S, D]: the last hidden states."""
    positions: Tensor | None
    """What the language model was handed as positions; `None`: it counts by itself, 0, 1, 2, …"""
    logits: Tensor
    """[N, V]: of the tokens that were asked for."""


@torch.no_grad()
def run(model: Any, inputs: Mapping[str, Any], tokens: Tensor | None = None) -> Seen:
    """One forward pass; `tokens` [N] are places in the flattened [B, S] whose logits are wanted (by default one)."""
    device = model.device
    wanted = torch.zeros(1, dtype=torch.long) if tokens is None else tokens
    moved = {
        name: _moved(value, device)
        for name, value in inputs.items()
        if name not in ("labels", "shift_labels")  # the model's own loss would want all logits
    }
    with _watched(model, wanted.to(device)) as seen:
        try:
            logits = model(**moved).logits
        except REFUSALS as error:
            said = " ".join(str(error).split())[:160]
            raise Refused(
                found=f"inputs that {type(model).__name__} refuses ({type(error).__name__}: {said})"
            ) from error
    return Seen(hidden=seen["hidden"], positions=seen.get("positions"), logits=logits[0].float())


def _moved(value: Any, device: torch.device) -> Any:
    """A tensor, or the masks of several kinds of layers, where the model is; anything else as it is."""
    if isinstance(value, Mapping):
        return {name: tensor.to(device) for name, tensor in value.items()}
    return value.to(device) if isinstance(value, Tensor) else value


def token_losses(
    model: Any, inputs: Mapping[str, Any], places: Sequence[int], labels: Sequence[int]
) -> tuple[Tensor, Seen]:
    """The losses of these labels, predicted at these places of the flattened [B, S], and what was seen on the way."""
    share = max(1, LOGITS // model.get_output_embeddings().weight.shape[0])
    seen = run(model, inputs, torch.tensor(places[:share]))
    losses = _losses(seen, labels[:share])
    for start in range(share, len(places), share):
        more = run(model, inputs, torch.tensor(places[start : start + share]))
        losses += _losses(more, labels[start : start + share])
    return torch.tensor(losses, dtype=torch.float64), seen


def _losses(seen: Seen, labels: Sequence[int]) -> list[float]:
    wanted = torch.tensor(labels, device=seen.logits.device, dtype=torch.long)
    losses: list[float] = cross_entropy(seen.logits, wanted, reduction="none").tolist()
    return losses


@contextmanager
def _watched(model: Any, wanted: Tensor) -> Iterator[dict[str, Tensor]]:
    """Hooks that note positions and hidden states, and let only the wanted tokens through to the logits."""
    seen: dict[str, Tensor] = {}

    def note_positions(module: Any, values: Any, named: dict[str, Any]) -> None:
        del module, values
        if isinstance(named.get("position_ids"), Tensor):
            seen["positions"] = named["position_ids"]

    def let_through(module: Any, values: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        del module
        seen["hidden"] = values[0]
        return (values[0].flatten(0, 1)[wanted][None], *values[1:])

    hooks = [
        model.get_decoder().register_forward_pre_hook(note_positions, with_kwargs=True),
        model.get_output_embeddings().register_forward_pre_hook(let_through),
    ]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()
