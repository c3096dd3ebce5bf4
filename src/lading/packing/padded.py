"""Single samples → padded rows, for whoever does not pack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lading.errors import ConfigError
from lading.fields import Field
from lading.packing.rows import join_media, row_width, stack_tokens
from lading.records import Batch, Pack


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
    width = row_width(singles, length)
    tokens = stack_tokens(singles, fields=fields, width=width, pad_token=pad_token)
    documents, positions = tokens.pop("document_ids"), tokens.pop("position_ids")
    return Batch(
        inputs={
            **tokens,
            "shift_labels": tokens["labels"],
            "position_ids": positions[1:] if positions.ndim == 3 else positions,
            "attention_mask": (documents > 0).long(),
            "use_cache": False,
            **join_media(singles, fields=fields),
        },
        rows=tuple(pack.documents for pack in singles),
        dropped=tuple(dropped for pack in singles for dropped in pack.dropped),
    )
