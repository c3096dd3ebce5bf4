"""`neat_packed_vlm_collater`: packs as dictionaries → a batch, with the mask an attention implementation wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lading.collate.masks import additive, block_causal, cumulative_lengths, flex_mask
from lading.errors import ConfigError, UnknownName
from lading.families import table_for
from lading.fields import TOKEN_FIELDS, Field
from lading.tensors import join, pad, stack

IMPLEMENTATIONS = ("flash_attention_2", "sdpa", "eager", "flex_attention", "cu_seqlens")
TOKENS: Mapping[str, Field] = {
    **{name: TOKEN_FIELDS[name] for name in ("input_ids", "labels", "position_ids")},
    "attention_mask": Field(axis="token"),
    "mm_token_type_ids": Field(axis="token"),
    "token_type_ids": Field(axis="token"),
}


def neat_packed_vlm_collater(
    batch: list[dict[str, Any]],
    padding_idx: int = 0,
    max_length: int | None = None,
    attn_implementation: str = "sdpa",
) -> dict[str, Any]:
    """Pad packs to one length, join their media, and turn the indexed mask (1, 2, … for documents, 0 for padding) into

    - `flash_attention_2`: itself, [B, S];
    - `sdpa`: a block-causal bool mask, [B, 1, S, S];
    - `eager`: the same as numbers to add to the scores, because eager attention adds its mask and a bool one there is
      silently wrong;
    - `flex_attention`: a `BlockMask`, made of the [B, S] index;
    - `cu_seqlens`: no mask, but `cu_seq_lens_q`, `cu_seq_lens_k`, `max_length_q` and `max_length_k` of the flat batch.

    Nothing is shifted: that happened when the packs were built.
    """
    if attn_implementation not in IMPLEMENTATIONS:
        raise UnknownName(kind="attn_implementation", name=str(attn_implementation), known=IMPLEMENTATIONS)
    if not batch:
        raise ConfigError(found="no packs", wanted="at least one", where="neat_packed_vlm_collater")
    width = _width(batch, max_length)
    values = {"input_ids": padding_idx}
    collated: dict[str, Any] = {
        name: stack([pad(pack[name], width, field, values.get(name)) for pack in batch])
        for name, field in TOKENS.items()
        if name in batch[0]
    }
    media = [{name: value for name, value in pack.items() if _is_medium(name, value)} for pack in batch]
    names = {name for part in media for name in part}
    collated |= join(media, table_for(names) if names else {})
    documents = collated.pop("attention_mask")
    return {**collated, **_masks(documents, attn_implementation)}


def _width(batch: list[dict[str, Any]], max_length: int | None) -> int:
    for pack in batch:
        for name in ("input_ids", "attention_mask"):
            if name not in pack:
                raise ConfigError(found=f"a pack without {name}", wanted="packs of PackedDatasetWrapper")
    longest = max(len(pack["input_ids"]) for pack in batch)
    if max_length is not None and longest > max_length:
        raise ConfigError(found=f"a pack of {longest} tokens", wanted=f"at most max_length, {max_length}")
    return longest if max_length is None else max_length


def _is_medium(name: str, value: object) -> bool:
    return name not in TOKENS and not name.startswith("n_") and isinstance(value, torch.Tensor)


def _masks(documents: torch.Tensor, implementation: str) -> dict[str, Any]:
    if implementation == "flash_attention_2":
        return {"attention_mask": documents}
    if implementation == "sdpa":
        return {"attention_mask": block_causal(documents)}
    if implementation == "eager":
        return {"attention_mask": additive(block_causal(documents))}
    if implementation == "flex_attention":
        return {"attention_mask": flex_mask(documents)}
    # Numbered on through the batch, so that the last document of a row and the first of the next stay apart.
    rows = torch.arange(len(documents))[:, None] * (int(documents.max()) + 1)
    borders = cumulative_lengths((documents + rows).flatten())
    longest = int(borders.diff().max())
    return {
        "attention_mask": None,
        "cu_seq_lens_q": borders,
        "cu_seq_lens_k": borders,
        "max_length_q": longest,
        "max_length_k": longest,
    }
