"""Scores of the vocabulary where something is trained, and nowhere else.

A model of 150,000 tokens computes as many numbers for every place of a row, most of them for places without a label.
transformers' models compute only those of the places that `logits_to_keep` names; for a batch of one row that is exact.
Qwen3-Omni's does not know the word, and raises.
"""

from __future__ import annotations

from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX
from lading.records import Batch


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
    return batch.with_inputs({"labels": chosen, "shift_labels": chosen, "logits_to_keep": kept})
