"""Encoded samples → packs → batches: positions, the one shift of the labels, padding and masks.

    pack       the samples of one pack → `Pack`: joined, shifted, with positions that restart at every document
    positions  the positions of a document and of a pack, three-way ones included
    batch      packs, or single samples as padded rows, → `Batch`: rows of one length, ready for `model(**batch)`
    masks      document numbers → the mask that an attention implementation wants
    trained    scores of the vocabulary only where a label is

It is given its samples: it chooses none, tokenises nothing and tries nothing again.
"""

from lading.packing.batch import collate_packs, collate_samples
from lading.packing.pack import append_untrained, build_pack, empty_pack, without_labels
from lading.packing.positions import document_positions, pack_positions
from lading.packing.trained import trained_only

__all__ = [
    "append_untrained",
    "build_pack",
    "collate_packs",
    "collate_samples",
    "document_positions",
    "empty_pack",
    "pack_positions",
    "trained_only",
    "without_labels",
]
