"""`lading plan`: count a corpus exactly, fill packs, and say how good that is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lading.cli.data import (
    Algorithm,
    DatasetNames,
    Epoch,
    FormatName,
    MediaFolder,
    MediaRoots,
    Meta,
    PackSize,
    PlaceholderMedia,
    Placing,
    Processor,
    Seed,
    TokenizerName,
    TooLong,
    WorldSize,
    counted,
    formats,
    opened,
)
from lading.cli.show import check_writable, console, plan_table, print_json, remark, say_nothing_is_left, took
from lading.cli.speech import Quiet, Verbose
from lading.plan.make import DEFAULT_ALGORITHM, DEFAULT_PLACING
from lading.progress import task

if TYPE_CHECKING:
    from lading.ledger import Ledger

SHOWN = 5
"""Dropped and truncated samples that are printed by name; the ledger has all of them."""


def plan(
    meta: Meta,
    processor: Processor,
    pack_size: PackSize,
    world_size: WorldSize = 1,
    seed: Seed = 0,
    epoch: Epoch = 0,
    algorithm: Algorithm = DEFAULT_ALGORITHM,
    placing: Placing = DEFAULT_PLACING,
    family: Annotated[str | None, typer.Option(help="Model family, where the processor's class does not tell.")] = None,
    tokenizer: TokenizerName = "auto",
    format_name: FormatName = None,
    media_dir: MediaFolder = None,
    media_roots: MediaRoots = None,
    dataset: DatasetNames = None,
    out: Annotated[Path | None, typer.Option(help="Write the plan to this file.", dir_okay=False)] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Write what became of each sample to this JSON file.", dir_okay=False)
    ] = None,
    too_long: TooLong = "drop",
    placeholder_media: PlaceholderMedia = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad sample.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Count a corpus exactly and plan its packs, without decoding a pixel."""
    with task("starting"):
        from lading.loader import LoaderConfig
        from lading.loader.accounts import open_ledger
        from lading.plan import plan_stats
        from lading.plan.file import save_plan

    config = LoaderConfig.of(
        pack_size=pack_size,
        world_size=world_size,
        seed=seed,
        epoch=epoch,
        algorithm=algorithm,
        placing=placing,
        too_long=too_long,
        placeholder_media=placeholder_media,
        strict=strict,
        tokenizer=tokenizer,
    )
    check_writable(out, ledger)
    corpus = opened(meta, format_name, media_dir, media_roots, dataset)
    planning = counted(corpus, processor, family, config, as_json=as_json)
    samples = planning.samples
    table, made = planning.lengths, planning.plan(config, config.epoch)
    with task("accounting"):
        accounts, stats = open_ledger(samples, table, made), plan_stats(made, table)
    if out is not None:
        with task(f"writing {out.name}"):
            save_plan(made, out)
    if ledger is not None:
        accounts.save(ledger)
    if as_json:
        print_json({"family": samples.facts.family.name, "formats": formats(corpus, samples.layouts), **asdict(stats)})
    else:
        _print_by_name(accounts)
        console.print(plan_table(stats, seconds=took()))
    if not stats.packs:
        say_nothing_is_left()
        raise typer.Exit(1)


def _print_by_name(accounts: Ledger) -> None:
    lines = [
        *(f"dropped {entry['where']}: {entry['detail']}" for entry in accounts.entries()),
        *(
            f"truncated {entry['where']}: kept {entry['kept']} of {entry['tokens']} tokens"
            for entry in accounts.truncations()
        ),
    ]
    for line in lines[:SHOWN]:
        remark(line)
    if len(lines) > SHOWN:
        remark(f"… and {len(lines) - SHOWN:,} more; --ledger FILE names them all")
