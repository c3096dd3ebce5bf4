"""`lading inspect`: look at a corpus as the model will see it, on a page or in the terminal."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lading.cli.data import DatasetNames, FormatName, MediaFolder, opened, print_formats
from lading.cli.show import check_writable, console, plan_table, print_json
from lading.loader import LoaderConfig, Samples, load_processor, read_processor
from lading.loader.accounts import open_books
from lading.loader.planning import Planning
from lading.loader.skip import SkipPolicy
from lading.loader.truncation import TOO_LONG
from lading.loader.watchdog import Watchdog
from lading.plan import plan_stats
from lading.progress import task
from lading.records import Finding
from lading.sources import Corpus

PRINTED = 3
"""Samples that are printed, unless more are asked for."""


def inspect(
    meta: Annotated[
        Path, typer.Argument(help="A meta .json; conversations in .jsonl, .json or .parquet; or a folder.")
    ],
    processor: Annotated[str, typer.Option(help="A processor folder, a hub id, or toy:NAME.")],
    pack_size: Annotated[int, typer.Option(help="Tokens in a pack.", min=1)] = 4096,
    samples: Annotated[
        int | None, typer.Option(help="Samples to show, dropped ones among them (200; 3 in the terminal).", min=1)
    ] = None,
    world_size: Annotated[int, typer.Option(help="Ranks that train together.", min=1)] = 1,
    out: Annotated[Path | None, typer.Option(help="Write the page to this file (report.html).", dir_okay=False)] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Print the tokens in colour; no page.")] = False,
    too_long: Annotated[
        str, typer.Option(help="What becomes of a sample longer than a pack: " + " or ".join(TOO_LONG) + ".")
    ] = "drop",
    examined: Annotated[
        bool, typer.Option("--doctor", help="Examine the whole corpus, too, and show what was found in each sample.")
    ] = False,
    family: Annotated[str | None, typer.Option(help="Model family, where the processor's class does not tell.")] = None,
    format_name: FormatName = None,
    media_dir: MediaFolder = None,
    dataset: DatasetNames = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Write one HTML file that shows samples, packs, the plan and the ledger; with --terminal, print tokens."""
    from lading import report

    page = out or (None if terminal else Path("report.html"))
    check_writable(page)
    config = LoaderConfig.of(pack_size=pack_size, world_size=world_size, too_long=too_long)
    started = time.monotonic()
    corpus = opened(meta, format_name, media_dir, dataset)
    planning = _planning(corpus, processor, family, config)
    if not as_json:
        print_formats(corpus, planning.samples.layouts)
    plan, lengths = planning.plan(config, config.epoch), planning.lengths
    ledger, stats = open_books(planning.samples, lengths, plan), plan_stats(plan, lengths)
    limit = samples or (PRINTED if terminal and not out else report.LIMIT)
    findings = _findings(meta, planning, config) if examined else ()
    books: dict[str, Any] = {"lengths": lengths, "plan": plan, "ledger": ledger, "findings": findings}
    with task("looking", min(limit, len(lengths))) as progress:
        shown = report.gather(planning.samples, **books, limit=limit, progress=progress)
    size = 0
    if page is not None:
        size = report.write(page, stats=stats, shown=shown, title=f"lading · {meta.name}", **books)
    summary = {
        "family": shown.family,
        "out": page and str(page),
        "bytes": size,
        "shown": len(shown.samples),
        **asdict(stats),
        "ledger": ledger.total(),
        "seconds": time.monotonic() - started,
    }
    if as_json:
        print_json(summary)
        return
    if terminal:
        for line in report.terminal(shown, lengths=lengths, ledger=ledger):
            console.print(line)
    else:
        console.print(plan_table(stats))
    if page is not None:
        said = f"Written to {page}: {len(shown.samples):,} samples, {size / 1e6:.1f} MB"
        console.print(f"{said}, {summary['seconds']:.1f} s.", style="dim")


def _planning(corpus: Corpus, processor: str, family: str | None, config: LoaderConfig) -> Planning:
    border = read_processor(load_processor(processor), family)
    policy = SkipPolicy(watchdog=Watchdog(config.decode_seconds))
    samples = Samples(corpus=corpus, border=border, policy=policy)
    return Planning.of(samples, samples.count(cache=True), config)


def _findings(meta: Path, planning: Planning, config: LoaderConfig) -> tuple[Finding, ...]:
    from lading.doctor import examine
    from lading.doctor.opening import patient_of

    patient = patient_of(meta, planning.samples.corpus)
    cores = len(os.sched_getaffinity(0))
    with task("examining", len(patient)) as progress:
        options: dict[str, Any] = {"pack_size": config.pack_size, "workers": cores, "progress": progress}
        return tuple(examine(patient, planning.samples.border, **options).findings)
