"""Packs, or single samples, → a batch. Rows are padded to one length; padding is a document that nothing sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from torch import Tensor

from lading.errors import ConfigError, UnknownName
from lading.family import ATTENTIONS, Attention, LayerSight
from lading.fields import IGNORE_INDEX, OUTSIDE_MODEL, Field
from lading.packing.masks import additive, block_causal, document_boundaries, picture_numbers, sight
from lading.records import Batch, Pack
from lading.tensors import join, stack_padded


def collate_packs(
    packs: Sequence[Pack],
    *,
    fields: Mapping[str, Field],
    pad_token: int,
    length: int | None = None,
    attention: Attention = "positions",
    layers: Mapping[str, LayerSight] | None = None,
) -> Batch:
    """A batch of packs, [B, S], padded to `length` or to the longest.

    With `attention="positions"` there is no mask, nor its name: transformers finds the documents from positions that
    restart, as long as no cache is made (`use_cache=False`, which the batch carries: with a cache the documents would
    see each other, silently). With `"mask"` the batch has an additive [B, 1, S, S] mask, right for `sdpa` and `eager`
    alike; for a model whose `layers` see differently, one for each kind of layer, by name. With `"varlen"` it has,
    besides the positions, the boundaries of the documents of all rows, by the names that transformers gives them.

    Labels were shifted when the packs were built; the batch carries them as `labels` and as `shift_labels`, which
    tells transformers not to shift again.
    """
    if attention not in ATTENTIONS:
        raise UnknownName(kind="attention", name=str(attention), known=ATTENTIONS, where="collate_packs")
    width = _row_width(packs, length)
    tokens = _stack_tokens(packs, fields=fields, width=width, pad_token=pad_token)
    documents, positions = tokens.pop("document_ids"), tokens.pop("position_ids")
    outside = {name: tokens.pop(name) for name in OUTSIDE_MODEL if name in tokens}
    masked = attention == "mask"
    return Batch(
        inputs={
            **tokens,
            "shift_labels": tokens["labels"],
            # The plain positions in front of three-way ones only mark documents; a mask does that by itself.
            "position_ids": positions[1:] if masked and positions.ndim == 3 else positions,
            **({"attention_mask": _masks(documents, tokens, layers)} if masked else {}),
            "use_cache": False,
            **(document_boundaries(documents) if attention == "varlen" else {}),
            **_join_media(packs, fields=fields),
        },
        rows=tuple(pack.documents for pack in packs),
        dropped=tuple(dropped for pack in packs for dropped in pack.dropped),
        fields=fields,
        outside=outside,
    )


def _masks(
    documents: Tensor, tokens: Mapping[str, Tensor], layers: Mapping[str, LayerSight] | None
) -> Tensor | dict[str, Tensor]:
    if layers is None:
        return additive(block_causal(documents))
    types = next((tokens[name] for name in ("mm_token_type_ids", "token_type_ids") if name in tokens), None)
    pictures = None if types is None else picture_numbers(types, documents)
    return {name: additive(sight(documents, pictures, layer)) for name, layer in layers.items()}


def collate_samples(
    singles: Sequence[Pack], *, fields: Mapping[str, Field], pad_token: int, length: int | None = None
) -> Batch:
    """A batch of one document a row, padded on the right, with the usual [B, S] mask of ones and zeros.

    A single sample is a pack of one document, so its labels are already shifted, like those of every pack.
    """
    crowded = [pack.number for pack in singles if len(pack.documents) != 1]
    if crowded:
        raise ConfigError(
            found=f"several documents in rows {crowded}",
            wanted="one a row; packs go through collate_packs",
            consequence="documents would see each other",
        )
    width = _row_width(singles, length)
    tokens = _stack_tokens(singles, fields=fields, width=width, pad_token=pad_token)
    documents, positions = tokens.pop("document_ids"), tokens.pop("position_ids")
    outside = {name: tokens.pop(name) for name in OUTSIDE_MODEL if name in tokens}
    return Batch(
        inputs={
            **tokens,
            "shift_labels": tokens["labels"],
            "position_ids": positions[1:] if positions.ndim == 3 else positions,
            "attention_mask": (documents > 0).long(),
            "use_cache": False,
            **_join_media(singles, fields=fields),
        },
        rows=tuple(pack.documents for pack in singles),
        dropped=tuple(dropped for pack in singles for dropped in pack.dropped),
        fields=fields,
        outside=outside,
    )


def _row_width(packs: Sequence[Pack], length: int | None) -> int:
    """The common length of the rows: the one asked for, or the longest pack's."""
    if not packs:
        raise ConfigError(found="no samples", wanted="at least one", where="collate")
    longest = max(pack.tensors["input_ids"].shape[-1] for pack in packs)
    if length is not None and longest > length:
        raise ConfigError(found=f"a row of {longest} tokens", wanted=f"at most {length}", where="collate")
    return longest if length is None else length


def _stack_tokens(
    packs: Sequence[Pack], *, fields: Mapping[str, Field], width: int, pad_token: int
) -> dict[str, Tensor]:
    """Every token field as [B, S] (three-way positions as [4, B, S])."""
    values = {"input_ids": pad_token}
    return {
        name: stack_padded([pack.tensors[name] for pack in packs], width, field, values.get(name))
        for name, field in fields.items()
        if field.axis == "token" and name in packs[0].tensors
    }


def _join_media(packs: Sequence[Pack], *, fields: Mapping[str, Field]) -> dict[str, Tensor]:
    """Every media field, the rows of all packs in order."""
    parts = [{name: tensor for name, tensor in pack.tensors.items() if fields[name].axis != "token"} for pack in packs]
    return join(parts, fields)


def trained_only(batch: Batch) -> Batch:
    """The batch with the scores asked for only where a label is; the loss is the same.

    Call it before the batch goes to a GPU: how many places there are must be known to the CPU.

        loss = model(**lading.trained_only(batch).to("cuda")).loss
    """
    labels = batch.tensor("shift_labels")
    if labels.shape[0] != 1:
        raise ConfigError(
            found=f"a batch of {labels.shape[0]} rows",
            wanted="one row (batch_size=1)",
            consequence="a model can leave out places of all rows alike, and theirs differ",
            where="trained_only",
        )
    kept = (labels[0] != IGNORE_INDEX).nonzero().ravel()
    if not len(kept):
        # No label at all: one place is kept, so that there is a loss to go back from.
        kept = labels.new_zeros(1)
    chosen = labels[:, kept]
    outside = {name: values[:, kept] for name, values in batch.outside.items()}
    trained = batch.with_inputs({"labels": chosen, "shift_labels": chosen, "logits_to_keep": kept})
    return replace(trained, outside=outside) if outside else trained


def weighted_loss(outputs: Any, batch: Batch, *, total: Tensor | float | None = None) -> Tensor:
    """The cross-entropy of a model's scores, each label counting as much as its `loss_weights` say: Σ weight · loss
    over Σ weight, or over `total`, where a step has several batches or ranks (the sum of their `label_weight`).

        loss = lading.weighted_loss(model(**batch), batch)
    """
    import torch

    weights, labels = batch.loss_weights, batch.tensor("shift_labels")
    scores = outputs["logits"] if isinstance(outputs, Mapping) else outputs.logits
    losses = torch.nn.functional.cross_entropy(
        scores.float().flatten(0, 1), labels.flatten().to(scores.device), ignore_index=IGNORE_INDEX, reduction="none"
    )
    summed = (losses * weights.flatten().to(losses.device)).sum()
    divisor = batch.label_weight if total is None else total
    return summed / divisor if divisor else summed  # a batch of fillers alone weighs nothing
