"""Sample number → conversation, length or tensors: a corpus, and the encoder that its conversations go through."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np

from lading.cache import Cache
from lading.conversation import Layout, cuts, read_conversation, shorten
from lading.conversation.keys import Reading
from lading.encode.encoder import Encoder
from lading.encode.processor_facts import ProcessorFacts
from lading.encode.tokeniser import Sized, TokenisedSample
from lading.errors import ConfigError, ExactnessError, Reason, SkipSample
from lading.progress import task
from lading.records import (
    COLUMNS,
    Conversation,
    Cut,
    Dropped,
    Encoded,
    Length,
    LengthTable,
    SampleKey,
    TooLong,
    Truncated,
)
from lading.samples.layouts import source_layouts
from lading.samples.skip import SkipPolicy
from lading.sources import Corpus, open_corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A corpus seen through one processor."""

    corpus: Corpus
    encoder: Encoder
    policy: SkipPolicy = field(default_factory=SkipPolicy)
    cuts: Mapping[int, Cut] = field(default_factory=dict)
    """Samples of which only a part is used, because they are too long (`fit`)."""
    layouts: tuple[Layout, ...] = ()
    """How the rows of each source are read; found out here, once, and carried along to workers."""
    reading: Reading = field(default_factory=Reading)
    """What is done with what rows say about training."""

    def __post_init__(self) -> None:
        if not self.layouts:
            object.__setattr__(self, "layouts", source_layouts(self.corpus, self.reading))

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def facts(self) -> ProcessorFacts:
        """What is known of the processor."""
        return self.encoder.facts

    def conversation(self, index: int) -> Conversation:
        """What sample `index` says, up to its cut if it has one."""
        return self.read(self.corpus.key(index))

    def read(self, key: SampleKey) -> Conversation:
        """The same by the sample's name, where that is known already."""
        whole = read_conversation(self.corpus.named(key), self.layouts[self.corpus.locate(key.index)[0]])
        return shorten(whole, self.cuts[key.index]) if key.index in self.cuts else whole

    def tokenised(self, indices: Sequence[int]) -> list[TokenisedSample | Dropped]:
        """Tokens and labels of many samples, without pixels; what cannot be used says why."""
        return self.policy.attempt_each(self._keys(indices), self._sized, self.encoder.tokenise)

    def measure(
        self, indices: Sequence[int], note: Callable[[Conversation], None] | None = None
    ) -> list[Length | Dropped]:
        """What many samples cost; `note` is shown every conversation that could be read."""

        def sized(key: SampleKey) -> Sized:
            conversation = self.read(key)
            if note is not None:
                note(conversation)
            return self.encoder.sized(conversation)

        return self.policy.attempt_each(self._keys(indices), sized, self.encoder.measure)

    def encode(self, index: int, counted: int | None = None) -> Encoded | Dropped:
        """Sample `index` as tensors, pixels included. A length other than the counted one is an error of ours."""
        return self.encode_all([index], None if counted is None else [counted])[0]

    def encode_all(self, indices: Sequence[int], counted: Sequence[int] | None = None) -> list[Encoded | Dropped]:
        """The same of several samples. All are tokenised before the first pixel is decoded: pixels drive everything
        else out of the caches, and a sample that is tokenised right behind a picture takes three times as long.
        """
        tokenised = self.tokenised(indices)
        if counted is not None:
            for sample, length in zip(tokenised, counted, strict=True):
                _check_length(sample, length)
        return [
            sample
            if isinstance(sample, Dropped)
            else self.policy.attempt(sample.conversation.key, partial(self.encoder.with_media, sample))
            for sample in tokenised
        ]

    def in_bytes(self) -> Samples:
        """The same samples with pixels in bytes, where they can be: they are joined before they are scaled."""
        return replace(self, encoder=self.encoder.in_bytes())

    def _keys(self, indices: Sequence[int]) -> list[SampleKey]:
        return [self.corpus.key(index) for index in indices]

    def _sized(self, key: SampleKey) -> Sized:
        return self.encoder.sized(self.read(key))


def _check_length(tokenised: TokenisedSample | Dropped, counted: int) -> None:
    if isinstance(tokenised, Dropped) or len(tokenised.ids) == counted:
        return
    raise ExactnessError(
        found=f"{len(tokenised.ids)} tokens of {tokenised.conversation.key}",
        wanted=f"{counted}, as counted",
        consequence="its media changed since it was counted, or the count is wrong: see `lading count --again`, "
        "and try tokenizer='exact' (`--tokenizer exact`)",
    )


def opened(
    corpus: Any,
    cache: Cache,
    format_name: str | None,
    media_dir: str | Path | None,
    media_roots: Sequence[str | Path] | None,
) -> Corpus:
    """The corpus behind a path or a data set; one that is open is taken as it is."""
    if not isinstance(corpus, Corpus):
        return open_corpus(corpus, cache=cache, format=format_name, media_dir=media_dir, media_roots=media_roots)
    if format_name is not None or media_dir is not None or media_roots is not None:
        raise ConfigError(
            found="format, media_dir or media_roots for a corpus that is open",
            wanted="open_corpus(…, format=…, media_dir=…, media_roots=…)",
            where="Loader",
        )
    return corpus


SLACK = 64
"""A template may write an answer shorter when it is the last one (by the frame of an empty thought, say), but not by
more tokens than this: cuts that lie further behind the limit in the whole sample are not tried."""
CHUNK = 256


def fit(samples: Samples, table: LengthTable, *, limit: int, too_long: TooLong) -> tuple[Samples, LengthTable]:
    """The corpus with every over-long sample cut to at most `limit` tokens, and its lengths; as it is, with `drop`.

    A sample of which no answer fits is in the table's `dropped`, as `too_long`.
    """
    long = np.flatnonzero(table.tokens > limit).tolist() if too_long == "truncate" else []
    if not long:
        return samples, table
    # Copied: a column of zeros may be one zero shown many times.
    columns = {name: column.copy() for name, column in zip(COLUMNS, attrgetter(*COLUMNS)(table), strict=True)}
    dropped, truncated = list(table.dropped), []
    for answer in _answers(samples, long, limit):
        length = answer[1] if isinstance(answer, tuple) else Length(tokens=0, label_tokens=0)
        entry = answer[0] if isinstance(answer, tuple) else answer
        for column, number in zip(columns.values(), astuple(length), strict=True):
            column[entry.key.index] = number
        if isinstance(entry, Dropped):
            dropped.append(entry)
        else:
            truncated.append(entry)
    fitting = replace(table, dropped=tuple(dropped), truncated=tuple(truncated), **columns)
    return replace(samples, cuts={entry.key.index: entry.cut for entry in truncated}), fitting


Answer = tuple[Truncated, Length] | Dropped


def _answers(samples: Samples, indices: Sequence[int], limit: int) -> Iterator[Answer]:
    for chunk in _chunks(indices):
        whole = dict(zip(chunk, samples.tokenised(chunk), strict=True))
        readable = {index: tokenised for index, tokenised in whole.items() if isinstance(tokenised, TokenisedSample)}
        found = _search(samples, readable, limit)
        for index, tokenised in whole.items():
            if isinstance(tokenised, Dropped):
                yield tokenised
            elif index in found:
                cut, length = found[index]
                key, tokens = tokenised.conversation.key, len(tokenised.ids)
                yield Truncated(key=key, tokens=tokens, kept=length.tokens, cut=cut), length
            else:
                yield samples.policy.settle(tokenised.conversation.key, _nothing_fits(tokenised, limit))


def _chunks(indices: Sequence[int]) -> Iterator[Sequence[int]]:
    with task("cutting over-long samples", len(indices)) as advance:
        for start in range(0, len(indices), CHUNK):
            chunk = indices[start : start + CHUNK]
            yield chunk
            advance(len(chunk))


def _search(samples: Samples, whole: dict[int, TokenisedSample], limit: int) -> dict[int, tuple[Cut, Length]]:
    """The longest cut that fits, of each sample that has one: all try their next one together, until none is left."""
    # A cut that the template refuses is no cut; it is no fault of the sample, even where faults are raised.
    lenient = replace(samples, policy=SkipPolicy())
    waiting = {index: iter(_worth_trying(tokenised, limit)) for index, tokenised in whole.items()}
    found: dict[int, tuple[Cut, Length]] = {}
    while waiting:
        tried = {index: cut for index, left in waiting.items() if (cut := next(left, None)) is not None}
        for index, tokenised in zip(tried, replace(lenient, cuts=tried).tokenised(list(tried)), strict=True):
            if isinstance(tokenised, TokenisedSample) and len(tokenised.ids) <= limit:
                found[index] = tried[index], tokenised.length
        waiting = {index: waiting[index] for index in tried if index not in found}
    return found


def _worth_trying(tokenised: TokenisedSample, limit: int) -> list[Cut]:
    """The cuts that may fit, by where their answers lie in the whole sample; the longest first."""
    messages = tokenised.conversation.messages
    answers = [place for place, message in enumerate(messages) if message.role == "assistant"]
    every = cuts(tokenised.conversation)
    if len(answers) != len(tokenised.spans):
        return every
    spans = dict(zip(answers, tokenised.spans, strict=True))

    def least(cut: Cut) -> int:
        start, stop = spans[cut.messages - 1]
        return stop if cut.parts == len(messages[cut.messages - 1].parts) else start

    return [cut for cut in every if least(cut) <= limit + SLACK]


def _nothing_fits(tokenised: TokenisedSample, limit: int) -> SkipSample:
    return SkipSample(
        Reason.TOO_LONG,
        found=f"{len(tokenised.ids)} tokens, and no answer that ends within the first {limit}",
        wanted=f"an answer or a medium that ends within the pack size, {limit}",
        where=tokenised.conversation.key.where,
    )
