"""Gemma 4's empty thought: the instruction-tuned models always open a channel for thinking before they answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lading.families import media_inputs
from lading.fields import Field
from lading.tensors import pad, stack
from lading.vlm.search import find_pattern

Ids = NDArray[np.int64]

MODEL_TURN = "<|turn>model\n"
THINKING_PREFIX = "<|channel>thought\n<channel|>"


def inject_thought(batch: dict[str, Any], tokenizer: Any) -> dict[str, Any]:
    """The batch with an empty thought behind every `<|turn>model` marker.

    What runs along with the ids [B, T] (masks, token types; any whole numbers [R, T] but those of media) grows with
    them: the mask by ones, other numbers by zeros. Rows with fewer turns are padded on the side the tokenizer pads on.
    """
    opening = tokenizer.encode(MODEL_TURN, add_special_tokens=False)
    prefix = torch.tensor(tokenizer.encode(THINKING_PREFIX, add_special_tokens=False))
    ids = batch["input_ids"]
    places = [find_pattern(row.numpy(), opening) + len(opening) for row in ids]
    width = ids.shape[1] + len(prefix) * max((len(own) for own in places), default=0)
    fillings = {"input_ids": prefix, "attention_mask": torch.ones_like(prefix)}
    pads = {"input_ids": tokenizer.pad_token_id}
    changed, media = dict(batch), media_inputs()
    for name, value in batch.items():
        if name not in media and _runs_along(value, ids.shape[1]):
            filling = fillings.get(name, torch.zeros_like(prefix)).to(value)
            rows = [_inserted(row, at, filling) for row, at in zip(value, _for_rows(places, len(value)), strict=True)]
            changed[name] = _padded(rows, width, pads.get(name, 0), left=tokenizer.padding_side == "left")
    return changed


def _runs_along(value: Any, width: int) -> bool:
    """Whether a value of the batch has a whole number for each token."""
    return (
        isinstance(value, torch.Tensor)
        and value.ndim == 2
        and value.shape[1] == width
        and not value.is_floating_point()
    )


def _for_rows(places: list[Ids], rows: int) -> list[Ids]:
    """Places for each of the rows: their own, or those of the only text. Whose others are is not known: they have none,
    and are only made as long.
    """
    if len(places) == rows:
        return places
    return [places[0] if len(places) == 1 else np.zeros(0, dtype=np.int64)] * rows


def _inserted(row: torch.Tensor, places: Ids, filling: torch.Tensor) -> torch.Tensor:
    values = np.insert(row.numpy(), np.repeat(places, len(filling)), np.tile(filling.numpy(), len(places)))
    return torch.from_numpy(values)


def _padded(rows: list[torch.Tensor], width: int, value: int, *, left: bool) -> torch.Tensor:
    return stack([pad(row, width, Field(axis="token"), value, left=left) for row in rows])
