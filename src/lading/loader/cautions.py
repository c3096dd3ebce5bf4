"""What a document would notice of others in its batch, however documents are kept apart: what the model asks of the
whole batch at once. A family declares it; the lengths say whether this corpus has it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from lading.family import Family
from lading.fields import MediaKind
from lading.records import LengthTable

SEE = "their losses differ from those alone (docs/exactness.md)"


def cautions(family: Family, lengths: LengthTable, *, capacity: int, placeholder: bool = False) -> list[str]:
    """What to say of a corpus for a family, of samples that fit into the `capacity` of a pack; mostly nothing.

    A `placeholder` is a picture that batches without any may get.
    """
    fits = (lengths.tokens > 0) & (lengths.tokens <= capacity)
    return [*_changed_media(family, lengths, fits, placeholder), *_long_documents(family, lengths, fits)]


def _changed_media(family: Family, lengths: LengthTable, fits: NDArray[np.bool_], placeholder: bool) -> list[str]:
    shown: Mapping[MediaKind, NDArray[np.bool_]] = {
        "image": fits & (lengths.images > 0),
        "video": fits & (lengths.videos > 0),
        "audio": fits & (lengths.audios > 0),
    }
    said = []
    for kind, other in family.changed_by.items():
        alone, others = int(np.count_nonzero(shown[kind] & ~shown[other])), int(np.count_nonzero(shown[other]))
        if alone and (others or (placeholder and other == "image")):
            beside = f"{other} in {others}" if others else f"the placeholder {other}"
            said.append(
                f"{family.title}: found {kind} without {other} in {alone} of {np.count_nonzero(fits)} samples, and"
                f" {beside}; wanted runs of their own: where they share a batch, the model projects {kind} otherwise,"
                f" and {SEE}"
            )
    return said


def _long_documents(family: Family, lengths: LengthTable, fits: NDArray[np.bool_]) -> list[str]:
    if family.short_context is None:
        return []
    long = fits & (lengths.tokens > family.short_context)
    count, samples = int(np.count_nonzero(long)), int(np.count_nonzero(fits))
    if count in (0, samples):
        return []
    return [
        f"{family.title}: found more than {family.short_context} tokens in {count} of {samples} samples; wanted a"
        f" pack_size of at most that: where they share a batch, all get the model's long rotary factors, and {SEE}"
    ]
