"""Data sets that tokenise conversations, and can show them before they do: also under wrappers that change neither."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from torch.utils.data import Subset

from lading.encode import Encoder
from lading.records import Conversation, Encoded, SampleKey
from lading.vlm.replacement import Replacing


@runtime_checkable
class Tokenising(Protocol):
    """Such a data set (`PreTokenizedDatasetWrapper`)."""

    encoder: Encoder
    max_length: int | None
    """Samples with more tokens are refused."""

    def __len__(self) -> int: ...

    def key(self, place: int, /) -> SampleKey:
        """The name of a sample."""
        ...

    def conversation(self, index: int, /) -> Conversation:
        """What a sample says."""
        ...

    def encoded(self, index: int, /) -> Encoded:
        """A sample, tokenised."""
        ...


class _Chosen:
    """Some samples of such a data set, under their places in the choice."""

    def __init__(self, dataset: Tokenising, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices
        self.encoder, self.max_length = dataset.encoder, dataset.max_length

    def __len__(self) -> int:
        return len(self.indices)

    def key(self, place: int) -> SampleKey:
        return self.dataset.key(int(self.indices[place]))

    def conversation(self, index: int) -> Conversation:
        return self.dataset.conversation(int(self.indices[index]))

    def encoded(self, index: int) -> Encoded:
        return self.dataset.encoded(int(self.indices[index]))


def tokenising(dataset: Any) -> Tokenising | None:
    """The data set that tokenises, sample for sample: itself, or what is under a `Subset` or a wrapper that replaces.

    Nobody knows what a wrapper of somebody else's does to its samples, so that one is not looked into: `None`. Nor is
    one that is derived from these.

    >>> tokenising(["a", "b"]) is None
    True
    """
    if isinstance(dataset, Tokenising):
        return dataset
    own = type(dataset)
    if isinstance(dataset, Replacing) and (own.fetch, own.__getitem__) == (Replacing.fetch, Replacing.__getitem__):
        return tokenising(dataset.dataset)
    if own is Subset:
        inner = tokenising(dataset.dataset)
        return None if inner is None else _Chosen(inner, dataset.indices)
    return None
