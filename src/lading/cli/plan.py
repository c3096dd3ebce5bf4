"""`lading plan`: count a corpus exactly, fill packs, and say how good that is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lading.cli import options
from lading.cli.show import (
    check_writable,
    console,
    plan_table,
    print_json,
    print_lost_sources,
    print_note,
    print_nothing_to_train_on,
    took,
)
from lading.cli.speech import Quiet, Verbose
from lading.plan.make import DEFAULT_ALGORITHM, DEFAULT_PLACING
from lading.progress import task

if TYPE_CHECKING:
    from lading.ledger import Ledger
    from lading.plan import PlanStats
    from lading.samples.samples import Samples

SHOWN = 5
"""Dropped and truncated samples that are printed by name; the ledger has all of them."""


def plan(
    meta: options.Meta,
    processor: options.Processor,
    pack_size: options.PackSize,
    world_size: options.WorldSize = 1,
    seed: options.Seed = 0,
    epoch: options.Epoch = 0,
    algorithm: options.Algorithm = DEFAULT_ALGORITHM,
    placing: options.Placing = DEFAULT_PLACING,
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
    out: Annotated[Path | None, typer.Option(help="Write the plan to this file.", dir_okay=False)] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Write what became of each sample to this JSON file.", dir_okay=False)
    ] = None,
    too_long: options.TooLong = "drop",
    placeholder_media: options.PlaceholderMedia = False,
    strict: options.Strict = False,
    as_json: options.AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Count a corpus exactly and plan its packs, without decoding a pixel."""
    with task("starting"):
        from lading.lengths.lost_sources import lost_sources
        from lading.loader.config import LoaderConfig
        from lading.loader.epoch import open_ledger
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
        **options.reading(train_on, reasoning, preference, row_weight, loss_weights, ignore_keys),
        template_options=options.template_options(template_option),
    )
    check_writable(out, ledger)
    corpus = options.opened(meta, format_name, media_dir, media_roots, dataset)
    planning = options.counted(corpus, processor, family, config, as_json=as_json)
    samples = planning.samples
    table, made = planning.lengths, planning.plan(config, config.epoch)
    with task("accounting"):
        accounts, stats = open_ledger(samples, table, made), plan_stats(made, table)
    if out is not None:
        with task(f"writing {out.name}"):
            save_plan(made, out)
    if ledger is not None:
        accounts.save(ledger)
    _show(samples, stats, accounts, as_json=as_json)
    _fail_where_lost(lost_sources(samples, table), stats)


def _fail_where_lost(lost: list[str], stats: PlanStats) -> None:
    print_lost_sources(lost)
    if not stats.packs:
        print_nothing_to_train_on()
    if lost or not stats.packs:
        raise typer.Exit(1)


def _show(samples: Samples, stats: PlanStats, accounts: Ledger, *, as_json: bool) -> None:
    if as_json:
        formats = options.formats(samples.corpus, samples.layouts)
        print_json({"family": samples.facts.family.name, "formats": formats, **asdict(stats)})
        return
    _print_by_name(accounts)
    console.print(plan_table(stats, seconds=took()))


def _print_by_name(accounts: Ledger) -> None:
    lines = [
        *(f"dropped {entry['where']}: {entry['detail']}" for entry in accounts.entries()),
        *(
            f"truncated {entry['where']}: kept {entry['kept']} of {entry['tokens']} tokens"
            for entry in accounts.truncations()
        ),
    ]
    for line in lines[:SHOWN]:
        print_note(line)
    if len(lines) > SHOWN:
        print_note(f"… and {len(lines) - SHOWN:,} more; --ledger FILE names them all")
