"""`lading families`: which models are known, and by which processor."""

from __future__ import annotations

from rich.table import Table

from lading.cli import options
from lading.cli.show import console, print_json
from lading.cli.speech import Quiet, Verbose


def families(
    as_json: options.AsJson = False,
    verbose: Verbose = 0,
    quiet: Quiet = False,
) -> None:
    """List the model families."""
    from lading import toy
    from lading.families import all_families
    from lading.fields import MEDIA_KINDS

    found = list(all_families())
    if as_json:
        rows = {
            family.name: {
                "title": family.title,
                "processors": list(family.processors),
                "models": list(family.models),
                "media": [kind for kind in MEDIA_KINDS if kind in family.media],
                "toy": family.name in toy.recipes(),
            }
            for family in found
        }
        print_json({"families": rows})
        return
    table = Table(title="Families", title_justify="left", title_style="bold", header_style="dim")
    for name in ("name", "model", "processor class", "media"):
        table.add_column(name, no_wrap=name == "name", overflow="fold")
    for family in found:
        table.add_row(
            family.name,
            family.title,
            "\n".join(family.processors),
            ", ".join(kind for kind in MEDIA_KINDS if kind in family.media),
        )
    console.print(table)
    console.print("--processor toy:NAME makes a small processor of any of them on the spot.", style="dim")
