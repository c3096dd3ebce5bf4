"""Records → plain values → one file: the page's own HTML, CSS and JavaScript, and the data in it.

The page fetches nothing, and could not: its security policy names the hash of its one script, and allows pictures
and sounds only from inside it. Texts of a corpus are data, never markup: every `<` in them is written as an escape, and
the page puts them on the screen as text. The data are compact, since a report of 2,000 samples must open at once:

vocabulary     [[id, text], …], the commonest first; tokens are places in it
media          addresses of pictures and sounds; a sample's media are places in it
sample.tokens  places in the vocabulary; `runs` says where one stands for many, `trained` [start, stop, …] what is
               learnt, `steps` [[place, t, h, w], …] where positions do not simply go on by one
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lading.cache import replacing
from lading.ledger import Ledger
from lading.plan import PlanStats
from lading.records import Finding, LengthTable, PackPlan
from lading.report.findings import by_sample, grouped
from lading.report.plan import pack_data, plan_charts
from lading.report.records import Gathered, MediumView, SampleView, TokensView

MODULES = (
    "dom", "data", "sources", "theme", "charts", "tokens", "sample", "list", "filters", "samples", "pack", "packs",
    "plan", "groups", "ledger", "keys", "main",
)  # fmt: skip
"""Each may use those before it."""
PLACES = 6000
"""Tokens of a sample in the page."""
LETTERS = 20_000
"""Letters of a text in the page."""

Plain = dict[str, Any]


def write(
    path: str | Path,
    *,
    stats: PlanStats,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    shown: Gathered | None = None,
    findings: Sequence[Finding] = (),
    losses: Sequence[float] = (),
    title: str = "lading report",
) -> int:
    """Write the report; `shown` are the samples in it (see `gather`). Returns its size in bytes."""
    data, media = report_data(
        stats=stats,
        lengths=lengths,
        plan=plan,
        ledger=ledger,
        shown=shown or Gathered(),
        findings=findings,
        losses=losses,
    )
    # A broken file name may hold half a character; it is written as its escape, which JSON reads back.
    page = render(title, data, media).encode("utf-8", errors="backslashreplace")
    with replacing(Path(path)) as file:
        return file.write(page)


def render(title: str, data: Any, media: list[str]) -> str:
    """The page as text."""
    from jinja2 import Environment

    script = bundle()
    template = Environment(autoescape=True).from_string(_read("page.html"))
    return template.render(
        title=title,
        style=_read("page.css"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        data=as_json(data),
        media=as_json(media),
    )


def as_json(value: Any) -> str:
    r"""JSON that may stand inside a page: nothing in it can end the element it stands in.

    >>> print(as_json(["</script>"]))
    ["\u003c/script>"]
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def bundle() -> str:
    """The page's modules in one script, each in a scope of its own: they are many files, and the page must be one."""
    return "\n" + "\n".join(_module(name, _read(f"{name}.js")) for name in MODULES)


def _module(name: str, source: str) -> str:
    r"""A module as a constant that holds what it exports.

    >>> print(_module("b", 'import { one } from "./a.js";\nexport const two = one + one;'))
    const module_b = (() => {
    const { one } = module_a;
    const two = one + one;
    return { two };
    })();
    """
    exported = re.findall(r"^export (?:const|class|function) (\w+)", source, flags=re.MULTILINE)
    inside = re.sub(r'^import (\{[^}]*\}) from "\./(\w+)\.js";', r"const \1 = module_\2;", source, flags=re.MULTILINE)
    inside = re.sub(r"^export (?=const|class|function)", "", inside, flags=re.MULTILINE)
    return f"const module_{name} = (() => {{\n{inside}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _read(name: str) -> str:
    return (files("lading.report") / "page" / name).read_text(encoding="utf-8")


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
