"""What every command that plans is told about the plan: the same options, so that one shows what another makes."""

from __future__ import annotations

from typing import Annotated

import typer

from lading.plan.knapsack import ALGORITHMS
from lading.plan.order import PLACINGS
from lading.records import TOO_LONG

PackSize = Annotated[int, typer.Option("--pack-size", help="Tokens in a pack.")]
WorldSize = Annotated[int, typer.Option("--world-size", help="Ranks that train together.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the order.")]
Epoch = Annotated[int, typer.Option("--epoch", help="Epoch of the order.")]
Algorithm = Annotated[str, typer.Option("--algorithm", help="One of: " + ", ".join(ALGORITHMS) + ".")]
Placing = Annotated[str, typer.Option("--placing", help="One of: " + ", ".join(PLACINGS) + ".")]
TooLong = Annotated[
    str, typer.Option("--too-long", help="What becomes of a sample longer than a pack: " + " or ".join(TOO_LONG) + ".")
]
PlaceholderMedia = Annotated[
    bool, typer.Option("--placeholder-media", help="Leave room for a placeholder, as the loader's option does.")
]
