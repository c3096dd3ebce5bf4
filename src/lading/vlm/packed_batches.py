"""Packs as dictionaries → a batch, with the mask an attention implementation wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from lading.errors import ConfigError, UnknownName
from lading.families import all_families, find, table_for
from lading.family import LayerSight
from lading.fields import SEQUENCE_FIELDS, is_count
from lading.packing.masks import (
    additive,
    block_causal,
    document_boundaries,
    flex_mask,
    picture_numbers,
    sight,
)
from lading.tensors import join, pad, stack
from lading.vlm.packed_samples import PackInputs

TYPES = ("mm_token_type_ids", "token_type_ids")
IMPLEMENTATIONS = ("flash_attention_2", "sdpa", "eager", "flex_attention", "cu_seqlens")


def collate_packed(
    batch: list[dict[str, Any]],
    padding_idx: int = 0,
    max_length: int | None = None,
    attn_implementation: str = "sdpa",
    layers: Mapping[str, LayerSight] | None = None,
) -> dict[str, Any]:
    """Pad packs to one length, join their media, and turn the indexed mask (1, 2, … for documents, 0 for padding) into

    - `flash_attention_2`: itself, [B, S];
    - `sdpa`: a block-causal bool mask, [B, 1, S, S];
    - `eager`: the same as numbers to add to the scores, because eager attention adds its mask and a bool one there is
      silently wrong;
    - `flex_attention`: a `BlockMask`, made of the [B, S] index;
    - `cu_seqlens`: no mask, but `cu_seq_lens_q`, `cu_seq_lens_k`, `max_length_q` and `max_length_k` of the flat batch.

    Nothing is shifted: that happened when the packs were built. `layers` says what each kind of layer sees, for a model
    whose layers differ (`loader.facts.read_layers`): `sdpa` and `eager` then get a mask for each kind, by name.
    `n_images_per_sample` and its like say how many media each row has; pipeline stages need them, and models ignore or
    refuse them, so they are there only where the packs carry them.
    """
    if attn_implementation not in IMPLEMENTATIONS:
        raise UnknownName(kind="attn_implementation", name=str(attn_implementation), known=IMPLEMENTATIONS)
    if not batch:
        raise ConfigError(found="no packs", wanted="at least one", where="collate_packed")
    width = _width(batch, max_length)
    values = {"input_ids": padding_idx}
    present = [name for name in SEQUENCE_FIELDS if any(name in pack for pack in batch)]
    collated: dict[str, Any] = {
        name: stack([pad(_own(pack, name), width, SEQUENCE_FIELDS[name], values.get(name)) for pack in batch])
        for name in present
    }
    media = [{name: value for name, value in pack.items() if _is_medium(name, value)} for pack in batch]
    names = {name for part in media for name in part}
    if layers is None and attn_implementation != "flash_attention_2":
        _refuse_one_mask_for_all(batch, names | {name for name in TYPES if name in present})
    collated |= join(media, table_for(names) if names else {})
    documents = collated.pop("attention_mask")
    types = next((collated[name] for name in TYPES if name in collated), None)
    return {**collated, **_counts(batch), **_masks(documents, types, attn_implementation, layers)}


def _own(pack: Mapping[str, Any], name: str) -> torch.Tensor:
    """A pack's own; for token types of plain text, zeros."""
    if name in pack:
        own: torch.Tensor = pack[name]
        return own
    if name in TYPES:
        return torch.zeros_like(pack["input_ids"])
    raise ConfigError(found=f"{name} in some packs and not in others", wanted="it in all of them, or in none")


def _counts(batch: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    """How many media each row has: the sum over its documents, where packs carry it."""
    names = dict.fromkeys(name for pack in batch for name in pack if is_count(name))
    return {name: torch.tensor([int(pack[name].sum()) if name in pack else 0 for pack in batch]) for name in names}


def _refuse_one_mask_for_all(batch: list[dict[str, Any]], names: set[str]) -> None:
    """One dense mask would take the place of the windows of a model whose layers see differently."""
    told = {pack.family for pack in batch if isinstance(pack, PackInputs) and pack.family}
    fitting = [find(name) for name in sorted(told)]
    # Packs of somebody else's making do not say; what their media are called may.
    fitting = fitting or [family for family in all_families() if names and names <= set(family.table)]
    if fitting and all(family.layers for family in fitting):
        raise ConfigError(
            found=f"packs of {' or '.join(family.title for family in fitting)} without layers",
            wanted="layers=read_layers(family, model.config, 'mask'), from lading.encode.processor_facts",
            consequence="its sliding windows and pictures that see both ways would be lost",
        )


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
    return name not in SEQUENCE_FIELDS and not is_count(name) and isinstance(value, torch.Tensor)


def _masks(
    documents: torch.Tensor,
    types: torch.Tensor | None,
    implementation: str,
    layers: Mapping[str, LayerSight] | None,
) -> dict[str, Any]:
    if implementation == "flash_attention_2":
        return {"attention_mask": documents}
    if layers is not None and implementation in ("sdpa", "eager"):
        pictures = None if types is None else picture_numbers(types, documents)
        seen = {name: sight(documents, pictures, layer) for name, layer in layers.items()}
        added = implementation == "eager"
        return {"attention_mask": {name: additive(mask) if added else mask for name, mask in seen.items()}}
    if implementation == "sdpa":
        return {"attention_mask": block_causal(documents)}
    if implementation == "eager":
        return {"attention_mask": additive(block_causal(documents))}
    if implementation == "flex_attention":
        return {"attention_mask": flex_mask(documents)}
    return {**document_boundaries(documents)}
