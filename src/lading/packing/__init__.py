"""Encoded samples → packs → batches: positions, the one shift of the labels, padding and masks.

    pack   the samples of one pack → `Pack`: joined, shifted, with positions (three-way ones, too) that restart at
           every document
    batch  packs, or single samples as padded rows, → `Batch`: rows of one length, ready for `model(**batch)`; the
           vocabulary scored only where a label is
    masks  document numbers → the mask that an attention implementation wants

It is given its samples: it chooses none, tokenises nothing and tries nothing again.
"""

from lading.packing.batch import collate_packs, collate_samples, trained_only, weighted_loss
from lading.packing.pack import (
    append_untrained,
    build_pack,
    document_positions,
    empty_pack,
    pack_positions,
    without_labels,
)

__all__ = [
    "append_untrained",
    "build_pack",
    "collate_packs",
    "collate_samples",
    "document_positions",
    "empty_pack",
    "pack_positions",
    "trained_only",
    "weighted_loss",
    "without_labels",
]
