"""`lading inspect`: look at a corpus as the model will see it, on a page or in the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lading.cli import options
from lading.cli.show import check_writable, console, plan_table, print_json, print_nothing_to_train_on, took
from lading.cli.speech import Quiet, Verbose
from lading.plan.make import DEFAULT_ALGORITHM, DEFAULT_PLACING
from lading.progress import task

if TYPE_CHECKING:
    from lading.doctor import Findings
    from lading.loader.config import LoaderConfig
    from lading.loader.planning import Planning
    from lading.plan import PlanStats
    from lading.records import Finding
    from lading.report import Gathered

PRINTED = 3
"""Samples that are printed, unless more are asked for."""


def inspect(
    meta: options.Meta,
    processor: options.Processor,
    pack_size: options.PackSize = 4096,
    samples: Annotated[
        int | None, typer.Option(help="Samples to show, dropped ones among them (200; 3 in the terminal).", min=1)
    ] = None,
    world_size: options.WorldSize = 1,
    seed: options.Seed = 0,
    epoch: options.Epoch = 0,
    algorithm: options.Algorithm = DEFAULT_ALGORITHM,
    placing: options.Placing = DEFAULT_PLACING,
    out: Annotated[Path | None, typer.Option(help="Write the page to this file (report.html).", dir_okay=False)] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Print the tokens in colour; no page.")] = False,
    too_long: options.TooLong = "drop",
    placeholder_media: options.PlaceholderMedia = False,
    examined: Annotated[
        bool, typer.Option("--doctor", help="Examine the whole corpus, too, and show what was found in each sample.")
    ] = False,
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
    as_json: options.AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Write one HTML file that shows samples, packs, the plan and the ledger; with --terminal, print tokens."""
    with task("starting"):
        from lading import report
        from lading.loader.config import LoaderConfig

    check_writable(page := out or (None if terminal else Path("report.html")))
    config = LoaderConfig.of(
        pack_size=pack_size,
        world_size=world_size,
        seed=seed,
        epoch=epoch,
        algorithm=algorithm,
        placing=placing,
        too_long=too_long,
        placeholder_media=placeholder_media,
        tokenizer=tokenizer,
        **options.reading(train_on, reasoning, preference, row_weight, loss_weights, ignore_keys),
        template_options=options.template_options(template_option),
    )
    corpus = options.opened(meta, format_name, media_dir, media_roots, dataset)
    planning = options.counted(corpus, processor, family, config, as_json=as_json)
    limit = samples or (PRINTED if terminal and not out else report.LIMIT)
    inspection = _inspect(meta, planning, config, limit=limit, examined=examined)
    size = inspection.write(page, title=f"lading · {meta.name}") if page is not None else 0
    seconds = took()
    if as_json:
        print_json({**inspection.summary(), "out": page and str(page), "bytes": size, "seconds": seconds})
    else:
        written = f"{len(inspection.shown.samples):,} samples, {size / 1e6:.1f} MB, {seconds:.1f} s"
        inspection.print(f"Written to {page}: {written}." if page else "", terminal=terminal)
    if not inspection.stats.packs:
        print_nothing_to_train_on()
        raise typer.Exit(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Inspection:
    """What is shown of a corpus."""

    shown: Gathered
    stats: PlanStats
    tables: Mapping[str, Any]
    """Lengths, plan, ledger and findings."""
    found: Findings | None

    def write(self, page: Path, title: str) -> int:
        from lading import report

        return report.write(page, stats=self.stats, shown=self.shown, title=title, **self.tables)

    def summary(self) -> dict[str, Any]:
        findings = {"findings": dict(self.found.counts)} if self.found is not None else {}
        numbers = {"family": self.shown.family, "shown": len(self.shown.samples), **asdict(self.stats)}
        return {**numbers, "ledger": self.tables["ledger"].total(), **findings}

    def print(self, written: str, *, terminal: bool) -> None:
        from lading import report

        shown = {name: self.tables[name] for name in ("lengths", "ledger", "findings")}
        for part in report.terminal(self.shown, **shown) if terminal else (plan_table(self.stats),):
            console.print(part)
        if self.found is not None:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in self.found.counts.items())
            console.print(f"The doctor found {kinds or 'nothing'}.", style="yellow" if kinds else "green")
        if written:
            console.print(written, style="dim", markup=False)


def _inspect(meta: Path, planning: Planning, config: LoaderConfig, *, limit: int, examined: bool) -> _Inspection:
    from lading import report
    from lading.loader.epoch import open_ledger
    from lading.plan import plan_stats

    plan, lengths = planning.plan(config, config.epoch), planning.lengths
    found = _examine(meta, planning, config) if examined else None
    findings = _listed(found) if found is not None else ()
    ledger = open_ledger(planning.samples, lengths, plan)
    tables: dict[str, Any] = {"lengths": lengths, "plan": plan, "ledger": ledger, "findings": findings}
    with task("looking", min(limit, len(lengths))) as progress:
        shown = report.gather(planning.samples, **tables, limit=limit, progress=progress)
    return _Inspection(shown=shown, stats=plan_stats(plan, lengths), tables=tables, found=found)


def _examine(meta: Path, planning: Planning, config: LoaderConfig) -> Findings:
    from lading.doctor import examine
    from lading.doctor.opening import examined_corpus

    examined = examined_corpus(meta, planning.samples.corpus, planning.samples.layouts)
    with task("examining", len(examined)) as progress:
        return examine(
            examined,
            planning.samples.facts,
            pack_size=config.pack_size,
            workers=options.own_cores(),
            progress=progress,
        )


def _listed(found: Findings) -> tuple[Finding, ...]:
    """For every sample what was found in its row; then what no sample shows."""
    of_samples = (finding for own in found.by_sample().values() for finding in own)
    return (*of_samples, *(finding for finding in found.findings if finding.key is None))
