"""Rows → examples, made when they are asked for.

An example is a dict with its `conversation` in typed parts (see `vlm/example_form.py`), and beside it what other
parts of a trainer look for: counts made beforehand (`_text_tokens` …), or a decoded sound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, overload

import numpy as np
from numpy.typing import NDArray

from lading.conversation import Layout, read_conversation
from lading.ledger import Ledger
from lading.media.opening import refuse_outside
from lading.records import Row, SampleKey
from lading.sources import Corpus
from lading.vlm.example_form import to_example
from lading.vlm.example_stats import collect

Example = dict[str, Any]
CARRIED = ("_text_tokens", "_media_tokens", "mm_inputs_meta")
"""Columns of a row that ride along: counts and sizes that were worked out beforehand."""


class Rows(Protocol):
    """Rows by number, each with a name for good."""

    def __len__(self) -> int: ...

    def key(self, number: int, /) -> SampleKey:
        """The name of a row."""
        ...

    def row(self, number: int, /) -> Row:
        """One row, read."""
        ...


class Examples(Sequence[Example]):
    """A lazy list of examples: `examples[i]` reads, parses and converts that one row.

    `numbers` are the rows it shows, all of them when `None`. Slices are lazy too. It pickles small, for workers.
    """

    def __init__(self, *, rows: Rows, read: Callable[[Row], Example], numbers: NDArray[np.int64] | None = None) -> None:
        self.rows, self.read = rows, read
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.rows) if self.numbers is None else len(self.numbers)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} of {self.rows!r})"

    @overload
    def __getitem__(self, place: int) -> Example: ...

    @overload
    def __getitem__(self, place: slice) -> Examples: ...

    def __getitem__(self, place: int | slice) -> Example | Examples:
        if isinstance(place, slice):
            return Examples(rows=self.rows, read=self.read, numbers=self._numbers()[place])
        return self.read(self.rows.row(self._number(place)))

    def __iter__(self) -> Iterator[Example]:
        return (self[place] for place in range(len(self)))

    def key(self, place: int) -> SampleKey:
        """The name of an example: the same on every rank, whatever share of the rows is shown here."""
        return self.rows.key(self._number(place))

    def ledger(self) -> Ledger:
        """An empty ledger of all rows, whatever share of them is shown here: for a wrapper that replaces some."""
        sources = [self.rows.key(number).source for number in range(len(self.rows))]
        names = list(dict.fromkeys(sources))
        return Ledger(sources=names, source=np.array([names.index(name) for name in sources], dtype=np.int32))

    @cached_property
    def stats(self) -> dict[str, int]:
        """Counts over all examples. The first time, every row is read for it."""
        return collect(self)

    def _number(self, place: int) -> int:
        if not -len(self) <= place < len(self):
            raise IndexError(f"example {place} of {len(self)}")
        place %= len(self)
        return place if self.numbers is None else int(self.numbers[place])

    def _numbers(self) -> NDArray[np.int64]:
        return np.arange(len(self), dtype=np.int64) if self.numbers is None else self.numbers


@dataclass(frozen=True, kw_only=True, slots=True)
class CorpusReader:
    """Rows of a corpus → examples, each by its own source's format, columns, tags and media folder."""

    corpus: Corpus
    layouts: tuple[Layout, ...]

    def __call__(self, row: Row) -> Example:
        """One example; media stay references."""
        return read_example(row, self.layouts[self.corpus.locate(row.key.index)[0]])


def read_example(row: Row, layout: Layout) -> Example:
    """A row as an example, with the columns that ride along. What its media may be is said here, once: an example is a
    plain dictionary, and forgets it.
    """
    conversation = read_conversation(row, layout)
    for part in conversation.media:
        refuse_outside(part)
    carried = {name: row.value[name] for name in CARRIED if name in row.value}
    return {**to_example(conversation), **carried}
