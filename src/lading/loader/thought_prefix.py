"""Gemma 4's empty thought: the instruction-tuned models always open a channel for thinking before they answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from lading.fields import Field
from lading.tensors import pad, stack
from lading.tokenise.search import find_pattern

MODEL_TURN = "<|turn>model\n"
THINKING_PREFIX = "<|channel>thought\n<channel|>"


def inject_thought(batch: dict[str, torch.Tensor], tokenizer: Any) -> dict[str, torch.Tensor]:
    """The batch with an empty thought behind every `<|turn>model` marker.

    What runs along with the ids (masks, token types) grows with them: the mask by ones, other whole numbers by zeros.
    Rows with fewer turns are padded on the side the tokenizer pads on.
    """
    opening = tokenizer.encode(MODEL_TURN, add_special_tokens=False)
    prefix = torch.tensor(tokenizer.encode(THINKING_PREFIX, add_special_tokens=False))
    ids = batch["input_ids"]
    places = [find_pattern(row.numpy(), opening) + len(opening) for row in ids]
    fillings = {"input_ids": prefix, "attention_mask": torch.ones_like(prefix)}
    pads = {"input_ids": tokenizer.pad_token_id}
    changed = dict(batch)
    for name, value in batch.items():
        if value.shape == ids.shape and not value.is_floating_point():
            filling = fillings.get(name, torch.zeros_like(prefix)).to(value)
            rows = [_inserted(row, at, filling) for row, at in zip(value, places, strict=True)]
            changed[name] = _padded(rows, pads.get(name, 0), left=tokenizer.padding_side == "left")
    return changed


def _inserted(row: torch.Tensor, places: np.ndarray[Any, Any], filling: torch.Tensor) -> torch.Tensor:
    values = np.insert(row.numpy(), np.repeat(places, len(filling)), np.tile(filling.numpy(), len(places)))
    return torch.from_numpy(values)


def _padded(rows: list[torch.Tensor], value: int, *, left: bool) -> torch.Tensor:
    longest = max(len(row) for row in rows)
    return stack([pad(row, longest, Field(axis="token"), value, left=left) for row in rows])
