"""The commands, and what happens to their errors: one line on the error stream and exit code 2, no stack trace."""

from __future__ import annotations

import io
import platform
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from lading import __version__
from lading.cli.show import begin, errors
from lading.cli.speech import Quiet, Verbose, speak
from lading.errors import LadingError, misspelt

COMMANDS: Mapping[str, str] = {
    "demo": "Make a corpus, count, plan, pack and train a small model on it.",
    "count": "Count every sample exactly, reading only media headers, and keep the lengths for `plan` and the loader.",
    "plan": "Count a corpus exactly and plan its packs, without decoding a pixel.",
    "doctor": "Find broken, odd and duplicated samples before the GPUs are rented. Exit code 1: there are errors.",
    "inspect": "Write one HTML file that shows samples, packs, the plan and the ledger; with --terminal, print tokens.",
    "verify": "Prove that packed = unpacked on your data: tokens, labels, positions, sight, loss. Exit code 1: not so.",
    "families": "List the model families.",
}
"""What each command does, as its own docstring says: the list of commands is shown without importing any."""
PACKAGES = ("torch", "transformers")
"""Packages that decide what comes out. They are not loaded for it."""

USAGE_ERROR: Any = typer.BadParameter.__base__
"""What the command line's own errors have in common."""


class Command(TyperCommand):
    """A command that suggests an option only where one was misspelt; typer suggests any that shares some letters."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            if vars(error).get("possibilities"):
                meant = misspelt(error.option_name, error.possibilities)
                error.possibilities = [meant] if meant is not None else []
            raise


def command(name: str) -> Any:
    """A command, from the module of its name."""
    own = typer.Typer(add_completion=False)
    own.command(name, cls=Command)(import_module(f"lading.cli.{name}").__dict__[name])
    return typer.main.get_command(own)


class CommandGroup(TyperGroup):
    """Commands by name; the module of one is imported when it is run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = {name: TyperCommand(name, help=text) for name, text in COMMANDS.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that was asked for, and its arguments."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else command(name), rest


app = typer.Typer(
    name="lading",
    cls=CommandGroup,
    help="Conversations with images, video and sound → balanced, packed, resumable training batches.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def print_versions(wanted: bool) -> None:
    """Print the versions, one a line, and end the command."""
    if not wanted:
        return
    from importlib.metadata import PackageNotFoundError, version

    typer.echo(f"lading {__version__}")
    typer.echo(f"python {platform.python_version()}")
    for package in PACKAGES:
        try:
            typer.echo(f"{package} {version(package)}")
        except PackageNotFoundError:
            typer.echo(f"{package} is not installed")
    raise typer.Exit()


@app.callback()
def lading(
    context: typer.Context,
    verbose: Verbose = 0,
    quiet: Quiet = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            is_eager=True,
            callback=print_versions,
            help="Print the versions of lading, Python, torch and transformers.",
        ),
    ] = False,
) -> None:
    """What stands before the command's name holds too: `lading -v plan …`."""
    begin(context.obj)
    if not (verbose or quiet):
        speak(context, 0)


def main(began: float | None = None) -> None:
    """Run the command line, which began at this time (`time.monotonic`), or now."""
    for stream in (sys.stdout, sys.stderr):
        # A name in a corpus may hold half a character, or one that a terminal lacks: it is shown as its escape.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app(obj=began)
    except LadingError as error:
        _fail(type(error).__name__, str(error))
    except OSError as error:
        # A full disk, a file that was taken away: nothing that a stack trace of ours would explain.
        if error.strerror is None:
            raise
        _fail(type(error).__name__, error.strerror + (f": {error.filename}" if error.filename else ""))


def _fail(kind: str, message: str) -> NoReturn:
    errors.print(f"[bold red]error[/] ({kind}): ", end="")
    errors.print(message, markup=False, highlight=False)
    sys.exit(2)
