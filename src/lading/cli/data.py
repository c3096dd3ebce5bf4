"""What every command that reads a corpus is told about it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lading.addresses import refuse_address
from lading.cli.show import remark
from lading.conversation import FORMATS, Layout
from lading.family import TokenizerChoice
from lading.sources import Corpus, open_corpus
from lading.sources.corpus import refuse_what_is_no_path


def _checked_corpus(path: Path) -> Path:
    # Before torch is loaded: whoever gives an address need not wait for it.
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
            remark(line, style="dim")


def formats(corpus: Corpus, layouts: tuple[Layout, ...]) -> dict[str, str | None]:
    """The same for programs."""
    return {source.config.name: layout.format for source, layout in zip(corpus.sources, layouts, strict=True)}
