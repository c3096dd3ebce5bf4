"""Records → plain values for the page, compact: a report of 2,000 samples must open at once.

vocabulary     [[id, text], …], the commonest first; tokens are places in it
media          addresses of pictures and sounds; a sample's media are places in it
sample.tokens  places in the vocabulary; `runs` says where one stands for many, `trained` [start, stop, …] what is
               learnt, `steps` [[place, t, h, w], …] where positions do not simply go on by one
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.ledger import Ledger
from lading.plan import PlanStats
from lading.records import Finding, LengthTable, PackPlan
from lading.report.charts import plan_charts
from lading.report.findings import by_sample, grouped
from lading.report.packs import pack_data
from lading.report.records import Gathered, MediumView, SampleView, TokensView

PLACES = 6000
"""Tokens of a sample in the page."""
LETTERS = 20_000
"""Letters of a text in the page."""

Plain = dict[str, Any]


def report_data(
    *,
    stats: PlanStats,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    shown: Gathered,
    findings: Sequence[Finding],
    losses: Sequence[float],
) -> tuple[Plain, list[str]]:
    """What the page is made of, and its media."""
    media: dict[str, int] = {}
    vocabulary = _vocabulary(shown)
    places = {token: place for place, token in enumerate(vocabulary)}
    found = by_sample(ledger, findings)
    elsewhere = [finding for finding in findings if finding.key is None]
    packs = _packs_of(plan, [view.key.index for view in shown.samples])
    texts = [[token, shown.texts[token]] for token in vocabulary]
    return {
        "about": {"family": shown.family, "sight": shown.sight, "samples": len(lengths)},
        "sources": list(lengths.sources),
        "vocabulary": texts,
        "samples": [
            _sample(view, lengths, packs.get(view.key.index, -1), found.get(view.key.index, []), places, media)
            for view in shown.samples
        ],
        "packs": pack_data(plan, lengths),
        "plan": {"stats": asdict(stats), **plan_charts(plan, lengths)},
        "ledger": _ledger(ledger),
        "found": grouped([*chain.from_iterable(found.values()), *elsewhere]),
        "losses": [round(loss, 5) for loss in losses if math.isfinite(loss)],
    }, list(media)


def _packs_of(plan: PackPlan, samples: Sequence[int]) -> dict[int, int]:
    """The packs of some samples; a plan may have a hundred million."""
    places = np.flatnonzero(np.isin(plan.members, np.array(samples, dtype=np.int64)))
    numbers = np.searchsorted(plan.starts, places, side="right") - 1
    return dict(zip(plan.members[places].tolist(), numbers.tolist(), strict=True))


def _vocabulary(shown: Gathered) -> list[int]:
    tally: Counter[int] = Counter()
    for view in shown.samples:
        if view.tokens is not None:
            tally.update(view.tokens.ids.tolist())
    return [token for token, _ in tally.most_common()]


def _sample(
    view: SampleView,
    lengths: LengthTable,
    pack: int,
    findings: Sequence[Finding],
    places: Mapping[int, int],
    media: dict[str, int],
) -> Plain:
    index = view.key.index
    plain: Plain = {
        "index": index,
        "source": int(lengths.source[index]),
        "where": view.key.where,
        "length": int(lengths.tokens[index]),
        "labels": int(lengths.label_tokens[index]),
        "pack": pack,
        "findings": [[finding.kind, finding.severity, finding.detail] for finding in findings],
        "turns": [{"role": turn.role, "parts": [_part(part, media) for part in turn.parts]} for turn in view.turns],
    }
    if view.trouble:
        plain["trouble"] = view.trouble
    if view.tokens is not None:
        plain |= _tokens(view.tokens, places)
    return plain


def _part(part: str | MediumView, media: dict[str, int]) -> str | Plain:
    if isinstance(part, str):
        return part if len(part) <= LETTERS else f"{part[:LETTERS]} … ({len(part) - LETTERS:,} more letters)"
    plain: Plain = {"kind": part.kind, "name": part.name, "facts": part.facts, "trouble": part.trouble}
    # The same picture may be shown by many samples.
    plain["pictures"] = [media.setdefault(picture, len(media)) for picture in part.pictures]
    if part.sound:
        plain["sound"] = media.setdefault(part.sound, len(media))
    return plain


def _tokens(tokens: TokensView, places: Mapping[int, int]) -> Plain:
    shown = slice(0, PLACES)
    counts, trained = tokens.counts[shown], tokens.trained[shown]
    runs = np.flatnonzero((counts > 1) | (tokens.medium[shown] >= 0)).tolist()
    return {
        "tokens": [places[token] for token in tokens.ids[shown].tolist()],
        "hidden": int(tokens.counts[PLACES:].sum()),
        "trained": np.flatnonzero(np.diff(trained.astype(np.int8), prepend=0, append=0)).tolist(),
        "runs": [
            [place, int(counts[place]), int(tokens.medium[place]), *_numbers(tokens.first[place], tokens.last[place])]
            for place in runs
        ],
        "steps": _steps(tokens.first[shown], tokens.last[shown]),
    }


def _steps(first: NDArray[Any], last: NDArray[Any]) -> list[list[float]]:
    """Where positions do not go on by one in every direction."""
    broken = np.any(first[1:] != last[:-1] + 1, axis=1)
    return [[place, *_numbers(first[place])] for place in [0, *(np.flatnonzero(broken) + 1).tolist()]]


def _numbers(*positions: NDArray[Any]) -> list[float]:
    """Whole where they are whole, to keep the page small."""
    every = (round(value, 3) for values in positions for value in values.tolist())
    return [int(value) if value == int(value) else value for value in every]


def _ledger(ledger: Ledger) -> Plain:
    return {
        "sources": [{"source": source, **totals} for source, totals in ledger.totals().items()],
        "total": ledger.total(),
    }
