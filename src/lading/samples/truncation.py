"""Samples longer than a pack, cut to what fits: a second step over a length table that was counted whole.

A sample is cut as a conversation (`lading.conversation.shorten`), rendered and counted anew, so that what is trained on
equals, token for token and pixel for pixel, what the processor makes of the shorter conversation: a template may close
its last turn in its own way, and a picture may be shown in another way when fewer stand beside it. The cut is found
once, here; `Samples.cuts` carries it to whoever opens the sample. A sample that fits costs nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from operator import attrgetter

import numpy as np

from lading.conversation import cuts
from lading.encode import TokenisedSample
from lading.errors import Reason, SkipSample
from lading.progress import task
from lading.records import COLUMNS, Cut, Dropped, Length, LengthTable, TooLong, Truncated
from lading.samples.samples import Samples
from lading.samples.skip import SkipPolicy

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
