"""Samples and packs as dictionaries → batches as the pages describe them: dictionaries, padded, their media joined.

Padded samples are shifted by one as a whole (`shift_batch`). Packs were shifted when they were built; their indexed
mask (1, 2, … for documents, 0 for padding) becomes what an attention implementation wants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lading.errors import ConfigError, Reason, SkipSample, UnknownName
from lading.families import all_families, find, table_for
from lading.family import LayerSight
from lading.fields import COUNT_NAMES, SEQUENCE_FIELDS, Field, is_count, row_count
from lading.packing.masks import additive, block_causal, document_boundaries, flex_mask, picture_numbers, sight
from lading.records import Document, Encoded
from lading.tensors import extent, join, pad, stack

REQUIRED = ("input_ids", "attention_mask", "labels")
TYPES = ("mm_token_type_ids", "token_type_ids")
IMPLEMENTATIONS = ("flash_attention_2", "sdpa", "eager", "flex_attention", "cu_seqlens")


class SampleInputs(dict[str, Tensor]):
    """The tensors of one sample by name, with the document they belong to: its counts travel with it."""

    document: Document


class PackInputs(dict[str, Any]):
    """The tensors of one pack by name, and the name of the family they are made for: text alone does not show it."""

    family: str | None = None


def as_inputs(encoded: Encoded) -> SampleInputs:
    """A sample for a collate function: `input_ids`, `attention_mask` and `labels` [T], and its media tensors."""
    ids = encoded.tensors["input_ids"]
    inputs = SampleInputs({"input_ids": ids, "attention_mask": torch.ones_like(ids), **encoded.tensors})
    inputs.document = encoded.document
    return inputs


def pad_samples(
    samples: Sequence[Mapping[str, Tensor]],
    *,
    fields: Mapping[str, Field],
    pad_token: int,
    length: int | None = None,
    left: bool = False,
    documents: Sequence[Document] | None = None,
) -> dict[str, Any]:
    """One row a sample, padded to `length` or to the longest; media one after the other, with their counts.

    `documents` says what belongs to each sample; without it, what has one row for each medium is counted.

    >>> rows = [{"input_ids": torch.tensor([5, 6])}, {"input_ids": torch.tensor([7])}]
    >>> pad_samples(rows, fields={"input_ids": Field(axis="token")}, pad_token=0)["input_ids"].tolist()
    [[5, 6], [7, 0]]
    """
    if not samples:
        raise ConfigError(found="no examples", wanted="at least one", where="collate")
    longest = max(len(sample["input_ids"]) for sample in samples)
    width = longest if length is None else length
    if longest > width:
        # The sample's fault, not the configuration's: whoever replaces bad samples goes on without it.
        raise SkipSample(
            Reason.TOO_LONG, found=f"a sample of {longest} tokens", wanted=f"at most {width}", where="collate"
        )
    batch = stack_tokens(samples, width, pad_token, left=left)
    media = [{name: value for name, value in sample.items() if name not in batch} for sample in samples]
    counts = tensor_counts(media, fields) if documents is None else document_counts(documents, fields)
    return batch | join(media, fields) | counts


def stack_tokens(
    samples: Sequence[Mapping[str, Tensor]], width: int, pad_token: int, *, left: bool = False
) -> dict[str, Tensor]:
    """What runs along with the ids of any sample, [B, T]. Token types of plain text are zeros where it has none."""
    stacked: dict[str, Tensor] = {}
    for name, field in SEQUENCE_FIELDS.items():
        if not any(name in sample for sample in samples):
            continue
        rows = []
        for place, sample in enumerate(samples):
            ids = sample["input_ids"]
            if name not in sample and name not in TYPES:
                raise ConfigError(found=f"no {name} in sample {place}", wanted="it in every sample, or in none")
            row = sample[name] if name in sample else torch.zeros_like(ids)
            if row.shape[-1] != len(ids):
                found = f"{name} of {row.shape[-1]} tokens in sample {place}"
                raise ConfigError(found=found, wanted=f"{len(ids)}, as its input_ids have")
            rows.append(pad(row, width, field, pad_token if name == "input_ids" else None, left=left))
        stacked[name] = stack(rows)
    return stacked


def tensor_counts(samples: Sequence[Mapping[str, Tensor]], fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """How many media of each kind every sample has, where any has one: [B] numbers each."""
    counts: dict[str, Tensor] = {}
    for kind, name in COUNT_NAMES.items():
        keys = [key for key, field in fields.items() if field.axis == kind]
        numbers = [next((len(sample[key]) for key in keys if key in sample), 0) for sample in samples]
        if any(numbers):
            counts[name] = torch.tensor(numbers)
    return counts


def document_counts(documents: Sequence[Document], fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """The same by what the documents carry, and `n_tiles_per_image` for a family whose pictures nothing else counts."""
    counts: dict[str, Tensor] = {}
    for kind, name in COUNT_NAMES.items():
        numbers = [len(document.footprints(kind)) for document in documents]
        if any(numbers):
            counts[name] = torch.tensor(numbers)
    axes = [field.axis for field in fields.values()]
    tiled = ("image_patch" in axes or "visual_patch" in axes) and "image" not in axes
    if tiled and COUNT_NAMES["image"] in counts and COUNT_NAMES["video"] not in counts:
        sizes = [footprint.rows for document in documents for footprint in document.footprints("image")]
        counts["n_tiles_per_image"] = torch.tensor(sizes)
    # Where tiles and frames share a tensor, or a grid stands for each run of pads, no input tells the rows of another.
    mixed = "visual_patch" in axes or "video_run" in axes
    for name, field in fields.items():
        counted = bool(field.counted_by) or (field.axis == "image_patch" and "n_tiles_per_image" in counts)
        if field.kinds and (mixed or (field.unit in ("patch", "run") and not counted)):
            rows = [extent(document, field) for document in documents]
            if any(rows):
                counts[row_count(name)] = torch.tensor(rows)
    return counts


def sample_counts(document: Document, fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """What one document adds to the counts of the row it is packed into: a number [1] each."""
    counts = document_counts([document], fields)
    # Tiles are counted by picture; what adds up over documents is how many rows they have in all. And a row of packs
    # has as many groups as it has documents with pictures, where a row of the batch has one.
    tiled = counts.pop("n_tiles_per_image", None) is not None
    rows = {
        name: extent(document, field)
        for name, field in fields.items()
        if field.unit == "group" or (tiled and field.axis == "image_patch")
    }
    return counts | {row_count(name): torch.tensor([number]) for name, number in rows.items() if number}


def shift_batch(batch: Mapping[str, Any]) -> dict[str, Any]:
    """The one shift: labels lose their first place, everything that runs along with them its last.

    >>> shifted = shift_batch({"input_ids": torch.tensor([[1, 2, 3]]), "labels": torch.tensor([[-100, 2, 3]])})
    >>> shifted["input_ids"].tolist(), shifted["labels"].tolist()
    ([[1, 2]], [[2, 3]])
    """
    width = batch["input_ids"].shape[-1]
    shifted = dict(batch)
    for name, value in batch.items():
        # Known by name: a medium may be as wide as the text by coincidence.
        if name in SEQUENCE_FIELDS and name != "labels" and value.shape[-1] == width:
            shifted[name] = value[..., :-1]
    # In one piece: transformers' losses look at labels as one long row, which a part of a wider tensor cannot be.
    shifted["labels"] = batch["labels"][..., 1:].contiguous()
    return shifted


def neat_packed_vlm_collater(
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
    whose layers differ (`lading.encode.processor_facts.read_layers`): `sdpa` and `eager` then get a mask for each kind,
    by name. `n_images_per_sample` and its like say how many media each row has; pipeline stages need them, and models
    ignore or refuse them, so they are there only where the packs carry them.
    """
    if attn_implementation not in IMPLEMENTATIONS:
        raise UnknownName(kind="attn_implementation", name=str(attn_implementation), known=IMPLEMENTATIONS)
    if not batch:
        raise ConfigError(found="no packs", wanted="at least one", where="collate_packed")
    for name in ("input_ids", "attention_mask"):
        if any(name not in pack for pack in batch):
            raise ConfigError(found=f"a pack without {name}", wanted="packs of PackedDatasetWrapper")
    longest = max(len(pack["input_ids"]) for pack in batch)
    if max_length is not None and longest > max_length:
        raise ConfigError(found=f"a pack of {longest} tokens", wanted=f"at most max_length, {max_length}")
    tokens = stack_tokens(batch, longest if max_length is None else max_length, padding_idx)
    media = [{name: value for name, value in pack.items() if _is_medium(name, value)} for pack in batch]
    names = {name for part in media for name in part}
    if layers is None and attn_implementation != "flash_attention_2":
        _refuse_one_mask_for_all(batch, names | tokens.keys() & set(TYPES))
    documents = tokens.pop("attention_mask")
    types = next((tokens[name] for name in TYPES if name in tokens), None)
    counts = {
        name: torch.tensor([int(pack[name].sum()) if name in pack else 0 for pack in batch])
        for name in dict.fromkeys(name for pack in batch for name in pack if is_count(name))
    }
    joined = join(media, table_for(names) if names else {})
    return {**tokens, **joined, **counts, **_masks(documents, types, attn_implementation, layers)}


def _is_medium(name: str, value: object) -> bool:
    return name not in SEQUENCE_FIELDS and not is_count(name) and isinstance(value, Tensor)


def _refuse_one_mask_for_all(batch: list[dict[str, Any]], names: set[str]) -> None:
    """One dense mask would take the place of the windows of a model whose layers see differently."""
    known = {pack.family for pack in batch if isinstance(pack, PackInputs) and pack.family}
    fitting = [find(name) for name in sorted(known)]
    # Packs of somebody else's making do not say; what their media are called may.
    fitting = fitting or [family for family in all_families() if names and names <= set(family.table)]
    if fitting and all(family.layers for family in fitting):
        raise ConfigError(
            found=f"packs of {' or '.join(family.title for family in fitting)} without layers",
            wanted="layers=read_layers(family, model.config, 'mask'), from lading.encode.processor_facts",
            consequence="its sliding windows and pictures that see both ways would be lost",
        )


def _masks(
    documents: Tensor, types: Tensor | None, implementation: str, layers: Mapping[str, LayerSight] | None
) -> dict[str, Any]:
    if implementation == "flash_attention_2":
        return {"attention_mask": documents}
    if implementation == "flex_attention":
        return {"attention_mask": flex_mask(documents)}
    if implementation == "cu_seqlens":
        return {**document_boundaries(documents)}
    if layers is None:
        masks = {"": block_causal(documents)}
    else:
        pictures = None if types is None else picture_numbers(types, documents)
        masks = {name: sight(documents, pictures, layer) for name, layer in layers.items()}
    if implementation == "eager":
        masks = {name: additive(mask) for name, mask in masks.items()}
    return {"attention_mask": masks[""] if layers is None else masks}
