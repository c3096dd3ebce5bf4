"""`lading demo`: the whole way, on data and a model made on the spot."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from lading.cli.show import check_writable, console, ledger_table, plan_table, print_json, took, two_columns
from lading.cli.speech import Quiet, Verbose
from lading.progress import task

FAMILY = "qwen2_5_vl"
RANKS = 4
"""The demo trains on one rank; the plan for this many is shown beside it."""
WIDTH = 60
"""Places of the loss curve."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything the demo makes.")] = Path("demo-out"),
    samples: Annotated[int, typer.Option(help="Conversations to make.", min=10)] = 160,
    pack_size: Annotated[int, typer.Option(help="Tokens in a pack.", min=64)] = 512,
    epochs: Annotated[int, typer.Option(help="Times to go over the corpus.", min=1)] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """Make a corpus, count, plan, pack and train a small model on it."""
    with task("starting"):
        from lading import Loader, make_plan, plan_stats, report, toy
        from lading.plan.file import save_plan

    check_writable(out / "corpus")
    meta = toy.write_corpus(out / "corpus", samples=samples, faults=True)
    processor = toy.processor(FAMILY)
    loader = Loader(meta, processor, pack_size=pack_size)
    spread = make_plan(loader.lengths, pack_size=pack_size, world_size=RANKS)
    save_plan(spread, out / "plan.lading")
    losses = _train(loader, epochs)
    loader.ledger.check()
    loader.ledger.save(out / "ledger.json")
    stats = plan_stats(spread, loader.lengths)
    tables: dict[str, Any] = {"lengths": loader.lengths, "plan": spread, "ledger": loader.ledger}
    shown = report.gather(loader.samples, **tables)
    report.write(out / "report.html", stats=stats, shown=shown, losses=losses, title="lading demo", **tables)
    (out / "losses.json").write_text(json.dumps(losses) + "\n", encoding="utf-8")
    summary: dict[str, Any] = {
        **asdict(stats),
        "loss_first": losses[0],
        "loss_last": losses[-1],
        "training_steps": len(losses),
        "ledger": loader.ledger.total(),
        "seconds": took(),
        "written": sorted(path.name for path in out.iterdir()),
    }
    if as_json:
        print_json(summary)
        return
    console.print(plan_table(stats))
    console.print(ledger_table(loader.ledger))
    table = two_columns("Demo")
    table.add_row("loss", _curve(losses))
    table.add_row("by epoch", " → ".join(f"{mean:.3f}" for mean in _means(losses, epochs)))
    table.add_row("written", f"{out}/: {', '.join(summary['written'])}")
    table.add_row("took", f"{summary['seconds']:.1f} s")
    console.print(table)


def _train(loader: Any, epochs: int) -> list[float]:
    """Loss of every step. The model is small and the data simple: it must learn, or something is wrong."""
    import torch

    from lading import toy

    model = toy.model(FAMILY)
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    losses: list[float] = []
    with task("training", epochs * len(loader)) as progress:
        for epoch in range(epochs):
            loader.set_epoch(epoch)
            for batch in loader:
                loss = model(**batch).loss
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.item())
                progress(1)
    return losses


def _means(losses: list[float], epochs: int) -> list[float]:
    share = max(1, len(losses) // epochs)
    return [sum(losses[start : start + share]) / share for start in range(0, share * epochs, share)]


def _curve(losses: list[float]) -> str:
    blocks = "▁▂▃▄▅▆▇█"
    top = max(losses)
    shown = [losses[place * len(losses) // WIDTH] for place in range(min(WIDTH, len(losses)))]
    return "".join(blocks[min(7, int(loss / top * 8))] for loss in shown)
