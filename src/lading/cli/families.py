"""`lading families`: which models are known, and by which processor."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from lading import toy
from lading.cli.show import console, print_json
from lading.families import all_families


def families(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """List the model families."""
    found = list(all_families())
    if as_json:
        rows = {
            family.name: {
                "title": family.title,
                "processors": list(family.processors),
                "models": list(family.models),
                "media": list(family.media),
                "toy": family.name in toy.recipes(),
            }
            for family in found
        }
        print_json({"families": rows})
        return
    table = Table(title="Families", title_justify="left", title_style="bold", header_style="dim")
    for name in ("name", "model", "processor class", "media", "toy"):
        table.add_column(name)
    for family in found:
        table.add_row(
            family.name,
            family.title,
            ", ".join(family.processors),
            ", ".join(family.media),
            f"toy:{family.name}" if family.name in toy.recipes() else "",
        )
    console.print(table)
