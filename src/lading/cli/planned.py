"""What every command that plans is told about the plan: the same options, so that one shows what another makes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lading.cli.data import print_formats
from lading.plan.knapsack import ALGORITHMS
from lading.plan.order import PLACINGS
from lading.records import TOO_LONG

if TYPE_CHECKING:
    from lading.loader import LoaderConfig
    from lading.loader.planning import Planning
    from lading.sources import Corpus

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


def counted(corpus: Corpus, processor: str, family: str | None, config: LoaderConfig, *, as_json: bool) -> Planning:
    """A corpus, counted; what its rows are read as is said first, to people."""
    from lading.encode import Encoder
    from lading.lengths import count_lengths
    from lading.loader import Samples
    from lading.loader.planning import Planning
    from lading.samples.skip import SkipPolicy

    encoder = Encoder.of(processor, family, tokenizer=config.tokenizer)
    policy = SkipPolicy(strict=config.strict, decode_seconds=config.decode_seconds)
    samples = Samples(corpus=corpus, encoder=encoder, policy=policy)
    if not as_json:
        print_formats(corpus, samples.layouts)
    return Planning.of(samples, count_lengths(samples, cache=True), config)
