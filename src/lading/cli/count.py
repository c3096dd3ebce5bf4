"""`lading count`: exact lengths of a corpus, counted once and kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from lading.addresses import refuse_writing_to_address
from lading.cli import options
from lading.cli.show import check_writable, console, print_json, print_lost_sources, print_note, took
from lading.cli.speech import Quiet, Verbose
from lading.errors import ConfigError
from lading.progress import task
from lading.records import COLUMNS, LengthTable

if TYPE_CHECKING:
    from lading.lengths.count import Count
    from lading.records import Dropped

SHOWN = 5
"""Dropped samples that are printed by name."""


def count(
    meta: options.Meta,
    processor: options.Processor,
    out: Annotated[
        Path | None, typer.Option(help="Keep lengths in this folder, not beside the data.", file_okay=False)
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that count; 0 or 1: this one alone.", min=0)] = 0,
    family: options.FamilyName = None,
    tokenizer: options.TokenizerName = "auto",
    format_name: options.FormatName = None,
    media_dir: options.MediaFolder = None,
    media_roots: options.MediaRoots = None,
    dataset: options.DatasetNames = None,
    train_on: options.TrainOnName = "all",
    reasoning: options.ReasoningName = "train",
    preference: options.PreferenceName = "refuse",
    row_weight: options.RowWeight = False,
    loss_weights: options.LossWeights = False,
    ignore_keys: options.IgnoreKeys = None,
    template_option: options.TemplateOptions = None,
    again: Annotated[bool, typer.Option("--again", help="Count everything, whatever was kept.")] = False,
    annotate: Annotated[
        Path | None,
        typer.Option(help="Write a copy of the corpus with the counts in its rows to this folder.", file_okay=False),
    ] = None,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Count every sample exactly, reading only media headers, and keep the lengths for `plan` and the loader."""
    with task("starting"):
        from lading.conversation.keys import Reading
        from lading.encode.encoder import Encoder
        from lading.lengths.annotate import META, write_annotated
        from lading.lengths.count import Counting
        from lading.lengths.lost_sources import lost_sources
        from lading.loader.config import DECODE_SECONDS
        from lading.samples import Samples
        from lading.samples.skip import SkipPolicy

    if annotate is not None and (annotate / META).resolve() == meta.resolve():
        found = f"a copy whose {META} would take the place of {meta}"
        raise ConfigError(found=found, wanted="a folder of its own", consequence="nothing was counted")
    refuse_writing_to_address(out or ".")
    check_writable(annotate / "rows" if annotate is not None else None)
    own = options.template_options(template_option)
    encoder = Encoder.of(processor, family, tokenizer=tokenizer, template_options=own)
    corpus = options.opened(meta, format_name, media_dir, media_roots, dataset)
    reading = Reading(**options.reading(train_on, reasoning, preference, row_weight, loss_weights, ignore_keys))
    policy = SkipPolicy(strict=strict, decode_seconds=DECODE_SECONDS)
    samples = Samples(corpus=corpus, encoder=encoder, policy=policy, reading=reading)
    if not as_json:
        options.print_formats(corpus, samples.layouts)
    started = time.monotonic()
    counted = Counting(samples=samples, workers=workers, cache=out or True, again=again).run()
    seconds = time.monotonic() - started
    copy = write_annotated(samples, counted.table, annotate) if annotate is not None else None
    summary = {**_summary(counted, seconds), **({"annotated": str(copy)} if copy else {})}
    lost = lost_sources(samples, counted.table)
    if as_json:
        formats = options.formats(corpus, samples.layouts)
        print_json({"family": samples.facts.family.name, "formats": formats, **summary, "lost_sources": lost})
    else:
        _show(counted.table.dropped, summary)
    if lost:
        print_lost_sources(lost)
        raise typer.Exit(1)


def _show(dropped: Sequence[Dropped], summary: dict[str, Any]) -> None:
    for entry in dropped[:SHOWN]:
        print_note(f"dropped {entry.key.where}: {entry.detail}")
    if len(dropped) > SHOWN:
        print_note(f"… and {len(dropped) - SHOWN:,} more; lading plan --ledger FILE names them all")
    console.print(_table(summary))
    for line in _summary_lines(summary):
        console.print(line, style="dim", markup=False, soft_wrap=True)


def _summary(counted: Count, seconds: float) -> dict[str, Any]:
    table = counted.table
    sources: dict[str, Any] = {}
    for number, name in enumerate(table.sources):
        own = _totals(table, table.source == number)
        fresh = min(counted.fresh[number], own["samples"])
        folder = counted.folders[number]
        unread = [asdict(key) for key in table.unread if key.source == name]
        kept = {"counted": fresh, "kept": own["samples"] - fresh, "folder": folder and str(folder)}
        sources[name] = {**own, **kept, "unread": unread}
    everything = _totals(table, np.ones(len(table), dtype=bool))
    counts = {name: sum(own[name] for own in sources.values()) for name in ("counted", "kept")}
    rate = counts["counted"] / seconds if seconds else 0.0
    return {"sources": sources, "total": {**everything, **counts}, "seconds": seconds, "samples_per_second": rate}


def _totals(table: LengthTable, own: Any) -> dict[str, int]:
    columns = {name: column[own] for name, column in zip(COLUMNS, attrgetter(*COLUMNS)(table), strict=True)}
    return {
        "samples": int(np.count_nonzero(own)),
        "dropped": int(np.count_nonzero(columns["tokens"] == 0)),
        **{name: int(column.sum(dtype=np.int64)) for name, column in columns.items()},
    }


def _table(summary: dict[str, Any]) -> Table:
    table = Table(title="Lengths", title_justify="left", title_style="bold", header_style="dim")
    for name in ("source", "samples", "tokens", "trained on", "of media", "dropped", "counted", "kept"):
        table.add_column(name, justify="left" if name == "source" else "right")
    for source, own in summary["sources"].items():
        table.add_row(source, *_cells(own))
    table.add_section()
    table.add_row("all", *_cells(summary["total"]), style="bold")
    return table


def _summary_lines(summary: dict[str, Any]) -> list[str]:
    """Lines below the table: not of it, since paths are longer than it is wide."""
    total = summary["total"]
    shown = {"images": "images", "videos": "clips", "frames": "frames of clips", "audios": "sounds"}
    media = ", ".join(f"{total[name]:,} {word}" for name, word in shown.items() if total[name])
    rate = f"{summary['samples_per_second']:,.0f} samples counted a second, in {summary['seconds']:.1f} s"
    folders = sorted({str(Path(own["folder"]).parent) for own in summary["sources"].values() if own["folder"]})
    lines = [
        *([media] if media else []),
        f"{rate}; took {took():.1f} s",
        f"kept in {', '.join(folders) or 'no folder'}",
    ]
    return [*lines, f"rows with their counts: {summary['annotated']}"] if "annotated" in summary else lines


def _cells(own: dict[str, int]) -> list[str]:
    media = own["visual_tokens"] + own["audio_tokens"]
    shown = (own["samples"], own["tokens"], own["label_tokens"], media, own["dropped"], own["counted"], own["kept"])
    return [f"{number:,}" for number in shown]
