"""`lading doctor`: what is wrong with a corpus, before any GPU time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lading.cli.data import (
    DatasetNames,
    FormatName,
    MediaFolder,
    MediaRoots,
    Meta,
    checked_processor,
    formats,
    own_cores,
    print_formats,
)
from lading.cli.show import check_writable, console, print_json, took, two_columns
from lading.cli.speech import Quiet, Verbose
from lading.progress import task
from lading.records import Severity

if TYPE_CHECKING:
    from lading.doctor import Findings
    from lading.doctor.clean import Cleaned

COLOURS: Mapping[Severity, str] = {"error": "red", "warning": "yellow", "notice": "cyan"}
SHOWN = 3
"""Examples of each kind that are printed; `--json` has all of them."""


def doctor(
    meta: Meta,
    processor: Annotated[
        str | None,
        typer.Option(
            help="A processor folder, a hub id, or toy:NAME: check tokens and labels, too.", callback=checked_processor
        ),
    ] = None,
    pack_size: Annotated[int | None, typer.Option(help="Tokens in a pack: find what is longer.", min=1)] = None,
    family: Annotated[str | None, typer.Option(help="Model family, where the processor's class does not tell.")] = None,
    format_name: FormatName = None,
    media_dir: MediaFolder = None,
    media_roots: MediaRoots = None,
    dataset: DatasetNames = None,
    deep: Annotated[bool, typer.Option("--deep", help="Decode every picture, clip and sound.")] = False,
    workers: Annotated[
        int | None,
        typer.Option(help="Processes that look; 0 or 1: this one alone. As many as cores, if not given.", min=0),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    fix: Annotated[
        Path | None,
        typer.Option(help="Write a copy without the bad rows, and the list of these, to this folder.", file_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Find broken, odd and duplicated samples before the GPUs are rented. Exit code 1: there are errors."""
    with task("starting"):
        from lading.doctor import examine, write_clean
        from lading.doctor.clean import check_copy
        from lading.doctor.opening import open_for_examination

    examined = open_for_examination(
        meta, dataset or None, format=format_name, media_dir=media_dir, media_roots=media_roots or None
    )
    if fix is not None:
        check_copy(examined, fix)
        check_writable(fix)
    if not as_json:
        print_formats(examined.corpus, examined.layouts)
    with task("looking", len(examined)) as progress:
        found = examine(
            examined,
            processor,
            family=family,
            pack_size=pack_size,
            deep=deep,
            workers=own_cores() if workers is None else workers,
            progress=progress,
        )
    copy = None
    try:
        copy = write_clean(found, fix, strict=strict) if fix is not None else None
    finally:
        # What was found is shown though no copy can be written.
        _tell(found, copy, as_json=as_json)
    if found.fails(strict=strict):
        raise typer.Exit(1)


def _tell(found: Findings, copy: Cleaned | None, *, as_json: bool) -> None:
    if not as_json:
        _print_kinds(found)
        console.print(_summary(found, copy))
        return
    fixed = {name: str(value) for name, value in asdict(copy).items()} if copy is not None else None
    examined = found.examined
    shown: dict[str, Any] = {"formats": formats(examined.corpus, examined.layouts), **found.to_dict(), "fixed": fixed}
    print_json(shown)


def _print_kinds(found: Findings) -> None:
    """Errors before warnings and notices, each kind with what it means and where it was found first."""
    from lading.doctor import KINDS

    for severity, colour in COLOURS.items():
        for kind, count in found.counts.items():
            about = KINDS[kind]
            if about.severity != severity:
                continue
            console.print(f"[bold {colour}]{severity}[/] [bold]{kind}[/] × {count:,}")
            console.print(f"  {about.training}", style="dim", markup=False, soft_wrap=True)
            for finding in found.of_kind(kind)[:SHOWN]:
                console.print(f"  {finding.where}: {finding.detail}", markup=False, soft_wrap=True)
            if count > SHOWN:
                console.print(f"  … and {count - SHOWN:,} more; --json names them", style="dim")


def _summary(found: Findings, copy: Cleaned | None) -> Table:
    table = two_columns("Doctor")
    numbers = {name: found.count(name) for name in COLOURS}
    said = ", ".join(
        f"{count:,} {name}{'' if count == 1 else 's'}" for name, count in numbers.items() if count or name != "notice"
    )
    table.add_row("found", f"[bold]{said}[/]")
    table.add_row("looked at", f"{found.samples:,} samples, {found.media:,} media")
    if found.processor is None:
        table.add_row("not looked at", "tokens, labels and lengths: they need --processor")
    if copy is not None:
        table.add_row("clean copy", escape(f"{copy.meta} ({copy.kept_rows:,} rows)"))
        table.add_row("left out", escape(f"{copy.left_out} ({copy.left_out_rows:,} rows)"))
    table.add_row("took", f"{took():.1f} s")
    return table
