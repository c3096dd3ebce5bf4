"""The page: a plan's quality, its packs, and where every sample went."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np

from lading.ledger import Ledger
from lading.plan import PlanStats
from lading.records import LengthTable, PackPlan
from lading.report.charts import curve, histogram, strips

STYLE = """
:root { color-scheme: light dark; --ink: #1b2430; --paper: #fbfaf7; --soft: #8a93a0;
        --first: #3566b8; --second: #7fa3dc; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e8eb; --paper: #14181d; --soft: #8a93a0; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
       max-width: 60rem; padding: 0 1rem; }
h2 { margin-top: 2.2rem; }
table { border-collapse: collapse; } td, th { padding: .2rem .9rem .2rem 0; text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; }
svg { width: 100%; max-width: 42rem; } rect { fill: var(--first); } rect.document1 { fill: var(--second); }
polyline { fill: none; stroke: var(--first); stroke-width: 2; }
.axis { display: flex; justify-content: space-between; max-width: 42rem; color: var(--soft); margin: 0; }
"""
SHOWN_PACKS = 60
SHOWN_ENTRIES = 200


def write(
    path: str | Path,
    *,
    stats: PlanStats,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    losses: Sequence[float] = (),
) -> None:
    """Write the report."""
    packs = [lengths.tokens[plan.pack(number)].tolist() for number in range(min(SHOWN_PACKS, len(plan)))]
    sections = [
        ("Plan", _rows(_plan_rows(stats))),
        ("Tokens in a sample", histogram(lengths.tokens[lengths.tokens > 0].astype(np.int64))),
        ("Tokens in a pack", histogram(plan.tokens)),
        (f"The first {len(packs)} packs, document by document", strips(packs, plan.pack_size)),
        ("Ledger", _ledger(ledger)),
        ("Not trained on, by name", _entries(ledger)),
    ]
    if losses:
        sections.insert(1, ("Loss", curve(losses)))
    body = "".join(f"<section><h2>{escape(title)}</h2>{inside}</section>" for title, inside in sections)
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>lading report</title><style>{STYLE}</style>'
        f"<h1>lading report</h1>{body}</html>\n",
        encoding="utf-8",
        errors="backslashreplace",  # a broken file name may hold half a character
    )


def _plan_rows(stats: PlanStats) -> list[tuple[str, str]]:
    return [
        ("samples", f"{stats.samples:,}"),
        ("packs", f"{stats.packs:,} of {stats.pack_size:,} tokens; no packing needs fewer than {stats.lower_bound:,}"),
        ("fill", f"{stats.fill:.4f}"),
        ("steps", f"{stats.steps:,} on {stats.world_size} ranks"),
        ("straggler factor", f"{stats.straggler:.4f}"),
        ("dropped", f"{stats.dropped:,}"),
    ]


def _rows(rows: Sequence[tuple[str, str]]) -> str:
    return "<table>" + "".join(f"<tr><th>{escape(a)}</th><td>{escape(b)}</td></tr>" for a, b in rows) + "</table>"


def _ledger(ledger: Ledger) -> str:
    names = ("input", "trained", "replaced", "dropped", "pending", "truncated")
    head = "".join(f"<th>{name}</th>" for name in ("source", *names))
    rows = [*ledger.totals().items(), ("all", ledger.total())]
    body = "".join(
        f"<tr><td>{escape(source)}</td><td>{totals['input']}</td><td>{totals['trained']}</td>"
        f"<td>{totals['replaced']}</td><td>{totals['dropped']}</td><td>{totals['pending']}</td>"
        f"<td>{totals['truncated']}</td></tr>"
        for source, totals in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _entries(ledger: Ledger) -> str:
    entries = ledger.entries()[:SHOWN_ENTRIES]
    if not entries:
        return "<p>none: every sample was trained on</p>"
    return _rows([(f"{entry['reason']}", f"{entry['where']} — {entry['detail']}") for entry in entries])
