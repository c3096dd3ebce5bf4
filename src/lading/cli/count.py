"""`lading count`: exact lengths of a corpus, counted once and kept."""

from __future__ import annotations

import time
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.table import Table

from lading.addresses import refuse_writing_to_address
from lading.cli.data import (
    DatasetNames,
    FormatName,
    MediaFolder,
    MediaRoots,
    Meta,
    Processor,
    TokenizerName,
    formats,
    opened,
    print_formats,
)
from lading.cli.show import check_writable, console, print_json, remark, took
from lading.cli.speech import Quiet, Verbose
from lading.errors import ConfigError
from lading.progress import task
from lading.records import COLUMNS, LengthTable

if TYPE_CHECKING:
    from lading.lengths import Count

SHOWN = 5
"""Dropped samples that are printed by name."""


def count(
    meta: Meta,
    processor: Processor,
    out: Annotated[
        Path | None, typer.Option(help="Keep lengths in this folder, not beside the data.", file_okay=False)
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that count; 0 or 1: this one alone.", min=0)] = 0,
    family: Annotated[str | None, typer.Option(help="Model family, where the processor's class does not tell.")] = None,
    tokenizer: TokenizerName = "auto",
    format_name: FormatName = None,
    media_dir: MediaFolder = None,
    media_roots: MediaRoots = None,
    dataset: DatasetNames = None,
    again: Annotated[bool, typer.Option("--again", help="Count everything, whatever was kept.")] = False,
    annotate: Annotated[
        Path | None,
        typer.Option(help="Write a copy of the corpus with the counts in its rows to this folder.", file_okay=False),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad sample.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Count every sample exactly, reading only media headers, and keep the lengths for `plan` and the loader."""
    with task("starting"):
        from lading.encode import Encoder
        from lading.lengths import Counting
        from lading.lengths.annotated_copy import META, write_annotated
        from lading.loader import Samples
        from lading.loader.config import DECODE_SECONDS
        from lading.samples.skip import SkipPolicy

    if annotate is not None and (annotate / META).resolve() == meta.resolve():
        found = f"a copy whose {META} would take the place of {meta}"
        raise ConfigError(found=found, wanted="a folder of its own", consequence="nothing was counted")
    refuse_writing_to_address(out or ".")
    check_writable(annotate / "rows" if annotate is not None else None)
    encoder = Encoder.of(processor, family, tokenizer=tokenizer)
    corpus = opened(meta, format_name, media_dir, media_roots, dataset)
    samples = Samples(
        corpus=corpus,
        encoder=encoder,
        policy=SkipPolicy(strict=strict, decode_seconds=DECODE_SECONDS),
    )
    if not as_json:
        print_formats(corpus, samples.layouts)
    started = time.monotonic()
    counted = Counting(samples=samples, workers=workers, cache=out or True, again=again).run()
    seconds = time.monotonic() - started
    copy = write_annotated(samples, counted.table, annotate) if annotate is not None else None
    said = {**_summary(counted, seconds), **({"annotated": str(copy)} if copy else {})}
    if as_json:
        print_json({"family": samples.facts.family.name, "formats": formats(corpus, samples.layouts), **said})
        return
    dropped = counted.table.dropped
    for entry in dropped[:SHOWN]:
        remark(f"dropped {entry.key.where}: {entry.detail}")
    if len(dropped) > SHOWN:
        remark(f"… and {len(dropped) - SHOWN:,} more; lading plan --ledger FILE names them all")
    console.print(_table(said))
    for line in _remarks(said):
        console.print(line, style="dim", markup=False, soft_wrap=True)


def _summary(counted: Count, seconds: float) -> dict[str, Any]:
    table = counted.table
    sources: dict[str, Any] = {}
    for number, name in enumerate(table.sources):
        own = _totals(table, table.source == number)
        fresh = min(counted.fresh[number], own["samples"])
        folder = counted.folders[number]
        sources[name] = {**own, "counted": fresh, "kept": own["samples"] - fresh, "folder": folder and str(folder)}
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


def _table(said: dict[str, Any]) -> Table:
    table = Table(title="Lengths", title_justify="left", title_style="bold", header_style="dim")
    for name in ("source", "samples", "tokens", "trained on", "of media", "dropped", "counted", "kept"):
        table.add_column(name, justify="left" if name == "source" else "right")
    for source, own in said["sources"].items():
        table.add_row(source, *_cells(own))
    table.add_section()
    table.add_row("all", *_cells(said["total"]), style="bold")
    return table


def _remarks(said: dict[str, Any]) -> list[str]:
    """Lines below the table: not of it, since paths are longer than it is wide."""
    total = said["total"]
    shown = {"images": "images", "videos": "clips", "frames": "frames of clips", "audios": "sounds"}
    media = ", ".join(f"{total[name]:,} {word}" for name, word in shown.items() if total[name])
    rate = f"{said['samples_per_second']:,.0f} samples counted a second, in {said['seconds']:.1f} s"
    folders = sorted({str(Path(own["folder"]).parent) for own in said["sources"].values() if own["folder"]})
    lines = [
        *([media] if media else []),
        f"{rate}; took {took():.1f} s",
        f"kept in {', '.join(folders) or 'no folder'}",
    ]
    return [*lines, f"rows with their counts: {said['annotated']}"] if "annotated" in said else lines


def _cells(own: dict[str, int]) -> list[str]:
    media = own["visual_tokens"] + own["audio_tokens"]
    shown = (own["samples"], own["tokens"], own["label_tokens"], media, own["dropped"], own["counted"], own["kept"])
    return [f"{number:,}" for number in shown]
