"""What a person sees: tables, bars, and JSON when a program asks. Bars go to the error stream, results to the other."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleDimensions
from rich.table import Table

from lading.addresses import refuse_writing_to_address
from lading.errors import ConfigError

if TYPE_CHECKING:
    from lading.ledger import Ledger, SourceTotals
    from lading.plan import PlanStats

_began: ContextVar[float] = ContextVar("lading_command_began")
"""When the command began: loading torch and opening files are part of how long it takes."""
WIDE = 100_000
"""Columns of a stream that is no terminal: as many as anything needs."""


def on_a_terminal(console: Console) -> bool:
    """Whether somebody looks at what is printed; that colours are forced (FORCE_COLOR) makes a pipe no terminal."""
    return console.file.isatty()


class UnwrappedConsole(Console):
    """A console that wraps lines on a terminal only: in a file or a pipe, a path that is broken in two is none."""

    @property
    def size(self) -> ConsoleDimensions:
        """Columns and lines."""
        return super().size if on_a_terminal(self) else ConsoleDimensions(WIDE, super().size.height)

    @size.setter
    def size(self, new: tuple[int, int]) -> None:
        Console.size.fset(self, new)  # type: ignore[attr-defined]  # a property's


console = UnwrappedConsole(highlight=False)
errors = UnwrappedConsole(stderr=True, highlight=False)


def check_writable(*paths: Path | None) -> None:
    """Refuse a place that cannot be written to before any work is done for it."""
    for path in paths:
        if path is None:
            continue
        refuse_writing_to_address(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            found = f"no way to write {path} ({error.strerror})"
            raise ConfigError(found=found, wanted="a folder to write in") from error
        if not os.access(path.parent, os.W_OK):
            raise ConfigError(found=f"no right to write {path}", wanted="a folder to write in")


def print_note(line: str, *, style: str = "yellow") -> None:
    """Print a line on the error stream about something unexpected; `--quiet` leaves it out."""
    if logging.getLogger("lading").isEnabledFor(logging.WARNING):
        errors.print(line, markup=False, style=style)


def print_nothing_to_train_on() -> None:
    """Print that a plan is empty: an error, which `--quiet` does not leave out."""
    errors.print("Nothing to train on: every sample was dropped, or there was none.", style="bold red")


def print_lost_sources(lines: Sequence[str]) -> None:
    """Print which sources gave nothing, and why: an error, which `--quiet` does not leave out."""
    for line in lines:
        errors.print(f"Nothing to train on in {line}", style="bold red", markup=False, soft_wrap=True)


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on the output stream, and nothing else."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        # Half a character, or a stream that is not UTF-8: JSON has escapes of its own, which it reads back.
        text = json.dumps(value, indent=2)
    print(text)  # noqa: T201 - plain output for programs, not rich's


def plan_table(stats: PlanStats, *, seconds: float | None = None) -> Table:
    """A plan's quality, and how long everything took."""
    table = two_columns("Plan")
    table.add_row("samples", f"{stats.samples:,}")
    table.add_row("packed", f"{stats.packed:,}")
    table.add_row("tokens", f"{stats.tokens:,} ({stats.label_tokens:,} trained on)")
    table.add_row(
        "packs", f"{stats.packs:,} of {stats.pack_size:,} (no packing needs fewer than {stats.lower_bound:,})"
    )
    table.add_row("fill", f"{stats.fill:.4f}")
    table.add_row("steps", f"{stats.steps:,} on {stats.world_size} rank{'s' if stats.world_size > 1 else ''}")
    table.add_row(
        "straggler factors",
        f"{stats.straggler:.4f} all work, {stats.straggler_attention:.4f} attention,"
        f" {stats.straggler_vision:.4f} vision (1 is perfect balance)",
    )
    table.add_row(
        "randomness",
        f"{stats.order_correlation:+.2f} correlation of steps and work (0 is random),"
        f" {stats.vision_spread:.2f} spread of vision among steps",
    )
    if stats.repeated:
        table.add_row("repeats", f"{stats.repeated:,} places of the last step hold a pack that was trained on before")
    if stats.truncated:
        table.add_row("truncated", f"{stats.truncated:,} (by {stats.tokens_cut:,} tokens)")
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in stats.dropped_by_reason.items())
    table.add_row("dropped", f"{stats.dropped:,}" + (f" ({reasons})" if reasons else ""))
    if seconds is not None:
        table.add_row("took", f"{seconds:.1f} s")
    return table


def ledger_table(ledger: Ledger) -> Table:
    """What became of every sample, by source."""
    table = Table(title="Ledger", title_justify="left", title_style="bold", header_style="dim")
    for name in ("source", "in", "trained", "replaced", "dropped", "pending", "truncated", "reasons"):
        table.add_column(name, justify="left" if name in ("source", "reasons") else "right")
    for name, totals in ledger.totals().items():
        table.add_row(name, *_cells(totals))
    table.add_section()
    table.add_row("all", *_cells(ledger.total()), style="bold")
    return table


def _cells(totals: SourceTotals) -> list[str]:
    reasons = ", ".join(f"{reason} {count:,}" for reason, count in totals["reasons"].items())
    numbers = (
        *(totals["input"], totals["trained"], totals["replaced"]),
        *(totals["dropped"], totals["pending"], totals["truncated"]),
    )
    return [*(f"{number:,}" for number in numbers), reasons]


def two_columns(title: str) -> Table:
    """A summary: what, and how much of it."""
    table = Table(title=title, title_justify="left", title_style="bold", show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    return table


def begin(at: float | None = None) -> None:
    """A command began at this time (`time.monotonic`), or now."""
    _began.set(time.monotonic() if at is None else at)


def took() -> float:
    """Seconds since the command began.

    >>> begin(time.monotonic() - 5)
    >>> round(took())
    5
    """
    return time.monotonic() - _began.get()
