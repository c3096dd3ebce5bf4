"""The loader's samples → what is shown of them: some of a corpus, chosen so that what is odd is among them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lading.fields import MEDIA_KINDS
from lading.ledger import Ledger
from lading.records import Conversation, Dropped, Finding, Footprint, LengthTable, MediaPart, PackPlan, SampleKey
from lading.report.choose import choose
from lading.report.media import Budget, medium_view, name_of
from lading.report.records import Gathered, MediumView, SampleView, Turn
from lading.report.tokens import token_texts, tokens_view

if TYPE_CHECKING:
    from lading.encode import TokenisedSample
    from lading.loader import Samples

CHUNK = 32
LIMIT = 200
"""Samples of a page, unless more are asked for."""


def gather(
    samples: Samples,
    *,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    findings: Sequence[Finding] = (),
    limit: int = LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Gathered:
    """Look at up to `limit` samples, their media included. What cannot be opened says why.

    shown = gather(loader.samples, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger)
    """
    entries = (*ledger.entries(), *ledger.truncations())
    marked = {entry["index"] for entry in entries} | {finding.key.index for finding in findings if finding.key}
    known = [index for index in marked if isinstance(index, int) and index < len(samples)]
    chosen = choose(len(samples), limit, marked=known, plan=plan)
    images, videos = (int(column[chosen].sum()) for column in (lengths.images, lengths.videos))
    budget = Budget.of(images + 4 * videos + int(lengths.audios[chosen].sum()))
    views: list[SampleView] = []
    for start in range(0, len(chosen), CHUNK):
        part = chosen[start : start + CHUNK]
        views += _look(samples, part, budget)
        progress(len(part))
    facts = samples.facts
    ids = {token for view in views if view.tokens is not None for token in view.tokens.ids.tolist()}
    return Gathered(
        samples=tuple(views),
        texts=token_texts(facts.processor.tokenizer, ids),
        family=facts.family.title,
        sight="" if facts.family.layers is None else _OTHER_SIGHT,
    )


_OTHER_SIGHT = (
    "Some layers of this family see less (a window) or more (pictures both ways): the picture shows documents alone."
)


def _look(samples: Samples, indices: Sequence[int], budget: Budget) -> Iterator[SampleView]:
    from lading.encode import TokenisedSample

    for index, tokenised in zip(indices, samples.tokenised(indices), strict=True):
        key = samples.corpus.key(index)
        if isinstance(tokenised, TokenisedSample):
            turns = _turns(samples, tokenised.conversation, _footprints(tokenised), budget)
            yield SampleView(key=key, turns=turns, tokens=tokens_view(tokenised, samples.facts.three_way))
            continue
        # What cannot be tokenised may still be read.
        talk = samples.policy.attempt(key, partial(samples.conversation, index))
        turns = () if isinstance(talk, Dropped) else _turns(samples, talk, (), budget)
        yield SampleView(key=key, turns=turns, trouble=tokenised.detail)


def _footprints(tokenised: TokenisedSample) -> list[Footprint]:
    """What the media take up, in reading order."""
    of_kind = {
        kind: iter([span.footprint for span in tokenised.media if span.footprint.kind == kind]) for kind in MEDIA_KINDS
    }
    return [next(of_kind[part.kind]) for part in tokenised.conversation.media]


def _turns(
    samples: Samples, conversation: Conversation, footprints: Sequence[Footprint], budget: Budget
) -> tuple[Turn, ...]:
    waiting = iter(footprints)

    def shown(part: MediaPart) -> MediumView:
        footprint = next(waiting, None)
        return _medium(samples, conversation.key, part, footprint, budget)

    return tuple(
        Turn(
            role=message.role,
            parts=tuple(shown(part) if isinstance(part, MediaPart) else part.text for part in message.parts),
        )
        for message in conversation.messages
    )


def _medium(
    samples: Samples, key: SampleKey, part: MediaPart, footprint: Footprint | None, budget: Budget
) -> MediumView:
    made = samples.policy.attempt(key, partial(medium_view, part, footprint, budget))
    if isinstance(made, Dropped):
        return MediumView(kind=part.kind, name=name_of(part), trouble=made.detail)
    return budget.take(made)
