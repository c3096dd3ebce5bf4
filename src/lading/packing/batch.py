"""Packs → a batch. Rows are padded to one length; the padding is a document of its own that nothing sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from lading.errors import UnknownName
from lading.family import ATTENTIONS, Attention, LayerSight
from lading.fields import Field
from lading.packing.masks import additive, block_causal, document_borders, picture_numbers, sight
from lading.packing.rows import join_media, row_width, stack_tokens
from lading.records import Batch, Pack


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
    besides the positions, the borders of the documents of all rows, by the names that transformers gives them.

    Labels were shifted when the packs were built; the batch carries them as `labels` and as `shift_labels`, which
    tells transformers not to shift again.
    """
    if attention not in ATTENTIONS:
        raise UnknownName(kind="attention", name=str(attention), known=ATTENTIONS, where="collate_packs")
    width = row_width(packs, length)
    tokens = stack_tokens(packs, fields=fields, width=width, pad_token=pad_token)
    documents, positions = tokens.pop("document_ids"), tokens.pop("position_ids")
    masked = attention == "mask"
    return Batch(
        inputs={
            **tokens,
            "shift_labels": tokens["labels"],
            # The plain positions in front of three-way ones only mark documents; a mask does that by itself.
            "position_ids": positions[1:] if masked and positions.ndim == 3 else positions,
            **({"attention_mask": _masks(documents, tokens, layers)} if masked else {}),
            "use_cache": False,
            **(document_borders(documents) if attention == "varlen" else {}),
            **join_media(packs, fields=fields),
        },
        rows=tuple(pack.documents for pack in packs),
        dropped=tuple(dropped for pack in packs for dropped in pack.dropped),
    )


def _masks(
    documents: Tensor, tokens: Mapping[str, Tensor], layers: Mapping[str, LayerSight] | None
) -> Tensor | dict[str, Tensor]:
    if layers is None:
        return additive(block_causal(documents))
    types = next((tokens[name] for name in ("mm_token_type_ids", "token_type_ids") if name in tokens), None)
    pictures = None if types is None else picture_numbers(types, documents)
    return {name: additive(sight(documents, pictures, layer)) for name, layer in layers.items()}
