"""`lading verify`: whether packed = unpacked, on the user's own data."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from lading.cli import options
from lading.cli.show import console, errors, print_json, took, two_columns
from lading.cli.speech import Quiet, Verbose
from lading.errors import UnknownName
from lading.family import ATTENTIONS
from lading.progress import task

SHOWN = 8
"""Differences that are printed by name; `--json` has all of them."""


def verify(
    meta: options.Meta,
    processor: options.Processor,
    pack_size: Annotated[int, typer.Option(help="Tokens in a pack.")],
    limit: Annotated[int, typer.Option(help="Samples to look at, spread over the corpus.", min=1)] = 64,
    model: Annotated[str, typer.Option(help="small: made on the spot; or a model folder or hub id.")] = "small",
    attention: Annotated[str, typer.Option(help="One of: " + ", ".join(ATTENTIONS) + ".")] = "positions",
    family: options.FamilyName = None,
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
    tolerance: Annotated[float | None, typer.Option(help="Largest difference of a loss that is none.")] = None,
    as_json: options.AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Prove that packed = unpacked on your data: tokens, labels, positions, sight, loss. Exit code 1: not so."""
    with task("starting"):
        from lading.conversation.keys import Reading
        from lading.samples.layouts import source_layouts
        from lading.verify.check import verify as check

    if attention not in ATTENTIONS:
        raise UnknownName(kind="attention", name=attention, known=ATTENTIONS, where="verify")
    chosen = next(name for name in ATTENTIONS if name == attention)
    corpus = options.opened(meta, format_name, media_dir, media_roots, dataset)
    reading = Reading(**options.reading(train_on, reasoning, preference, row_weight, loss_weights, ignore_keys))
    if not as_json:
        options.print_formats(corpus, source_layouts(corpus, reading))
    found = check(
        corpus,
        processor,
        pack_size=pack_size,
        limit=limit,
        model=model,
        attention=chosen,
        family=family,
        tolerance=tolerance,
        reading=reading,
        template_options=options.template_options(template_option),
    )
    if as_json:
        print_json(found.to_dict())
    else:
        for difference in found.differences[:SHOWN]:
            errors.print(f"differs {difference}", markup=False, style="red")
        if len(found.differences) > SHOWN:
            errors.print(f"… and {len(found.differences) - SHOWN:,} more; --json names them all", style="red")
        console.print(_table(found))
    if not found.holds:
        raise typer.Exit(1)


def _table(found: Any) -> Table:
    title = "Packed = unpacked" if found.holds else "Packed ≠ unpacked"
    if found.holds and not found.losses:
        title += ", as far as it was compared: no loss was"
    table = two_columns(title)
    table.add_row("documents", f"{found.documents:,} of {found.samples:,} samples, in {found.packs:,} packs")
    for aspect in ("tokens", "labels", "positions", "pixels"):
        differing = found.differing(aspect)
        table.add_row(aspect, f"{differing:,} documents differ" if differing else "equal")
    if found.losses:
        apart, moved = f"{found.max_abs_loss_diff:.1e}", f"{found.max_abs_sight_diff:.1e}"
        table.add_row("loss", f"at most {apart} apart, over {found.losses:,} documents (tolerance {found.tolerance:g})")
        table.add_row("sight", f"{found.differing('sight'):,} documents see another (moved by {moved})")
    table.add_row("lost", f"{found.differing('lost'):,}")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in found.dropped.items())
    table.add_row("dropped", reasons or "0")
    for what, count in found.not_run.items():
        table.add_row("not compared", f"{count:,} documents: {what}")
    table.add_row("with", f"{found.family}, {found.model} model, attention by {found.attention}")
    table.add_row("took", f"{took():.1f} s")
    return table
