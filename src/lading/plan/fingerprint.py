"""What tells one length table or one plan from another."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.records import LengthTable, PackPlan

PIECE = 1 << 22
"""Numbers hashed at a time: a column may be a view without memory of its own."""
DIGESTS: Mapping[str, str] = {
    "lengths": "lengths of samples: other data or media, another processor or setting of it, or another too_long",
    "costs": "costs of packs: another model, or work declared anew",
}
"""What a digest stands for, and why it may differ: by itself it says nothing to anybody."""


def lengths_fingerprint(table: LengthTable) -> str:
    """Names what a plan is made from: every sample's length and vision.

    >>> one, other = (LengthTable.of(tokens=np.array([3, last])) for last in (4, 5))
    >>> lengths_fingerprint(one) == lengths_fingerprint(other)
    False
    """
    return _digest([f"{len(table)}"], [table.tokens, table.patches, table.patch_pairs])


def plan_fingerprint(plan: PackPlan) -> str:
    """Names the packs of a plan. How many ranks there are does not matter: any number may carry on with them."""
    said = [f"{plan.pack_size}", f"{plan.seed}", f"{plan.epoch}", plan.algorithm, plan.placing, plan.lengths]
    return _digest([*said, costs_fingerprint(plan)], [plan.members, plan.starts])


def costs_fingerprint(plan: PackPlan) -> str:
    """Names what the packs of a plan cost: places are chosen by that."""
    return _digest([f"{len(plan)}"], [np.ascontiguousarray(plan.costs, dtype="<f4").view("<i4").ravel()])


def made_of(plan: PackPlan) -> dict[str, int | str]:
    """Everything that decides who shares a pack, by name."""
    return {
        "samples": plan.samples,
        "lengths": plan.lengths,
        "pack_size": plan.pack_size,
        "seed": plan.seed,
        "algorithm": plan.algorithm,
        "placing": plan.placing,
        "costs": costs_fingerprint(plan),
    }


def differences(found: Mapping[str, int | str], here: Mapping[str, int | str]) -> str:
    """What is not as it is here, by name.

    >>> differences({"seed": 1, "pack_size": 8}, {"seed": 2, "pack_size": 8})
    'seed 1 where it is 2 here'
    """
    other = [name for name, value in here.items() if found.get(name) != value]
    return "; ".join(
        f"other {DIGESTS[name]}" if name in DIGESTS else f"{name} {found.get(name)!r} where it is {here[name]!r} here"
        for name in other
    )


def _digest(said: Iterable[str], arrays: Iterable[NDArray[Any]]) -> str:
    digest = hashlib.blake2b(digest_size=8)
    digest.update("\n".join(said).encode())
    for array in arrays:
        for start in range(0, len(array), PIECE):
            piece = array[start : start + PIECE]
            # The values alone choose the type, so that a plan read from a compact file has the name of the one that was
            # written; and the smallest that holds them, because hashing is paid by the byte.
            smallest = np.dtype(np.min_scalar_type(int(piece.max()))).newbyteorder("<")
            digest.update(smallest.str.encode())
            digest.update(np.ascontiguousarray(piece, dtype=smallest).data)
    return digest.hexdigest()
