"""The options that commands share: of every command that reads a corpus, and of those that plan, so that one shows what
another makes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lading.addresses import refuse_address
from lading.cli.show import print_note
from lading.conversation import FORMATS, Layout
from lading.conversation.keys import Preference, Reasoning, TrainOn
from lading.errors import ConfigError
from lading.family import TokenizerChoice
from lading.plan.knapsack import ALGORITHMS
from lading.plan.order import PLACINGS
from lading.records import TOO_LONG
from lading.sources import Corpus, open_corpus
from lading.sources.corpus import refuse_what_is_no_path

if TYPE_CHECKING:
    from lading.loader.config import LoaderConfig
    from lading.loader.planning import Planning


def _checked_corpus(path: Path) -> Path:
    # Before torch is loaded: an address is refused at once.
    refuse_what_is_no_path(path)
    return path


def checked_processor(name: str | None) -> str | None:
    """The name of a processor that is no address."""
    if name is not None:
        refuse_address(name, wanted="a processor")
    return name


Meta = Annotated[
    Path,
    typer.Argument(
        help="A meta .json; conversations in .jsonl, .json or .parquet; or a folder.", callback=_checked_corpus
    ),
]
Processor = Annotated[
    str, typer.Option("--processor", help="A processor folder, a hub id, or toy:NAME.", callback=checked_processor)
]
TokenizerName = Annotated[
    TokenizerChoice,
    typer.Option("--tokenizer", help="exact: encode text by the processor's own tokenizer alone, never by gigatoken."),
]
FamilyName = Annotated[
    str | None, typer.Option("--family", help="Model family, where the processor's class does not tell.")
]
FormatName = Annotated[
    str | None,
    typer.Option("--format", help="Read rows as one of: " + ", ".join(FORMATS) + ". Without it, by their first rows."),
]
MediaFolder = Annotated[
    Path | None, typer.Option("--media-dir", help="Where media are, in place of what META says.", file_okay=False)
]
MediaRoots = Annotated[
    list[Path] | None,
    typer.Option("--media-root", help="A folder below which media must lie, links followed; may be given again."),
]
DatasetNames = Annotated[
    list[str] | None, typer.Option("--dataset", help="A data set of META; may be given again. Without it, all.")
]

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
TrainOnName = Annotated[
    TrainOn, typer.Option("--train-on", help="Which answers have labels: all of a conversation, or its last one.")
]
ReasoningName = Annotated[
    Reasoning,
    typer.Option("--reasoning", help="Reasoning beside answers: train on it, only give it as context, or drop it."),
]
PreferenceName = Annotated[
    Preference,
    typer.Option("--preference", help="Rows with a chosen and a rejected answer: refuse, or train on the chosen one."),
]
RowWeight = Annotated[bool, typer.Option("--row-weight", help="A row's bare `weight` says how much its loss counts.")]
LossWeights = Annotated[
    bool, typer.Option("--loss-weights", help="Weights other than 0 and 1 are meant: the loss will use them.")
]
TemplateOptions = Annotated[
    list[str] | None,
    typer.Option("--template-option", help="NAME=VALUE for the chat template (thinking=true); may be given again."),
]
IgnoreKeys = Annotated[
    list[str] | None,
    typer.Option("--ignore-key", help="A key that says how to train, left unread on purpose; may be given again."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Strict = Annotated[bool, typer.Option("--strict", help="Stop at the first bad sample.")]


def reading(
    train_on: TrainOn,
    reasoning: Reasoning,
    preference: Preference,
    row_weight: bool,
    loss_weights: bool,
    ignore_keys: list[str] | None,
) -> dict[str, Any]:
    """What is done with what rows say about training, as options of the loader."""
    return {
        "train_on": train_on,
        "reasoning": reasoning,
        "preference": preference,
        "row_weight": row_weight,
        "loss_weights": loss_weights,
        "ignore_keys": tuple(ignore_keys or ()),
    }


def template_options(given: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs, whose values are JSON, or text where they are none.

    >>> template_options(["preserve_thinking=true", "style=brief"])
    {'preserve_thinking': True, 'style': 'brief'}
    """
    found: dict[str, Any] = {}
    for one in given or ():
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise ConfigError(found=f"--template-option {one}", wanted="NAME=VALUE", consequence="nothing was counted")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def own_cores() -> int:
    """The cores that this process may use; all of the machine's where the system cannot say (Linux can).

    >>> own_cores() >= 1
    True
    """
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def opened(
    meta: Path,
    format_name: str | None = None,
    media_dir: Path | None = None,
    media_roots: list[Path] | None = None,
    datasets: list[str] | None = None,
) -> Corpus:
    """The corpus that a command was asked for."""
    roots = media_roots or None
    return open_corpus(meta, datasets or None, format=format_name, media_dir=media_dir, media_roots=roots)


def print_formats(corpus: Corpus, layouts: tuple[Layout, ...]) -> None:
    """One line for each source, on the error stream: what its rows are read as. `--quiet` leaves them out."""
    for source, layout in zip(corpus.sources, layouts, strict=True):
        if layout.format is not None:
            line = f"{source.config.name}: read as {layout.format} ({FORMATS[layout.format].title})"
            print_note(line, style="dim")


def formats(corpus: Corpus, layouts: tuple[Layout, ...]) -> dict[str, str | None]:
    """The same for programs."""
    return {source.config.name: layout.format for source, layout in zip(corpus.sources, layouts, strict=True)}


def counted(corpus: Corpus, processor: str, family: str | None, config: LoaderConfig, *, as_json: bool) -> Planning:
    """A corpus, counted; first, unless JSON is wanted, a note of what its rows are read as."""
    from lading.encode.encoder import Encoder
    from lading.lengths.count import count_lengths
    from lading.loader.planning import Planning
    from lading.samples import Samples
    from lading.samples.skip import SkipPolicy

    encoder = Encoder.of(processor, family, tokenizer=config.tokenizer, template_options=config.template_options)
    policy = SkipPolicy(strict=config.strict, decode_seconds=config.decode_seconds)
    samples = Samples(corpus=corpus, encoder=encoder, policy=policy, reading=config.reading)
    if not as_json:
        print_formats(corpus, samples.layouts)
    return Planning.of(samples, count_lengths(samples, cache=True), config)
