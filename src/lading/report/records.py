"""What is shown of a sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.fields import MediaKind
from lading.records import Role, SampleKey


@dataclass(frozen=True, kw_only=True, slots=True)
class MediumView:
    """A picture, clip or sound, made small. Law: without `pictures` and `sound`, `trouble` says why."""

    kind: MediaKind
    name: str
    facts: str = ""
    """Its size, and what it takes up."""
    pictures: tuple[str, ...] = ()
    """Addresses that hold the data themselves (`data:`): one of a picture, a few of a clip."""
    sound: str = ""
    trouble: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """One message: texts and media as they stand in it."""

    role: Role
    parts: tuple[str | MediumView, ...]


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class TokensView:
    """The tokens of a document, C places. Law: `counts` add up to its length; only a medium's exceed 1."""

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    """How often the token stands there, one beside the other."""
    trained: NDArray[np.bool_]
    first: NDArray[Any]
    """[C, 1] plain positions or [C, 3] (time, height, width): of the first token of a place."""
    last: NDArray[Any]
    """The same of the last."""
    medium: NDArray[np.int64]
    """Which of the sample's media a place shows, in reading order; -1 for text."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class SampleView:
    """A sample as a person sees it. Law: without tokens, the ledger or `trouble` says why."""

    key: SampleKey
    turns: tuple[Turn, ...] = ()
    tokens: TokensView | None = None
    trouble: str = ""
    """Why it cannot be read, or not be tokenised."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Gathered:
    """The samples of a page. Law: every token id in them has its text."""

    samples: tuple[SampleView, ...] = ()
    texts: Mapping[int, str] = field(default_factory=dict)
    family: str = ""
    sight: str = ""
    """A note on which tokens see which, where that is more than a document that sees its past."""
