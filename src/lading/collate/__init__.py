"""Samples or packs → `Batch`. This room does not tokenise and does not retry.

packed  packs → rows of one length, ready for `model(**batch)`
pad     single samples → padded rows, for whoever does not pack
trained scores of the vocabulary only where a label is
masks   document ids → the mask an attention implementation wants
"""

from lading.collate.packed import collate_packs
from lading.collate.pad import collate_samples
from lading.collate.trained import trained_only

__all__ = ["collate_packs", "collate_samples", "trained_only"]
