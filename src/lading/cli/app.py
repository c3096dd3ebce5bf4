"""The commands, and what happens to their errors: one line on the error stream and exit code 2, no stack trace."""

from __future__ import annotations

import io
import sys
from typing import NoReturn

from lading.cli.count import count
from lading.cli.demo import demo
from lading.cli.doctor import doctor
from lading.cli.families import families
from lading.cli.inspect import inspect
from lading.cli.plan import plan
from lading.cli.show import errors
from lading.cli.speech import Commands, ask
from lading.cli.verify import verify
from lading.errors import LadingError

app = Commands(
    name="lading",
    help="Conversations with images, video and sound → balanced, packed, resumable training batches.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.callback()(ask)
app.command()(demo)
app.command()(count)
app.command()(plan)
app.command()(doctor)
app.command()(inspect)
app.command()(verify)
app.command()(families)


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        # A name in a corpus may hold half a character, or one that a terminal lacks: it is shown as its escape.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except LadingError as error:
        _say(type(error).__name__, str(error))
    except OSError as error:
        # A full disk, a file that was taken away: nothing that a stack trace of ours would explain.
        if error.strerror is None:
            raise
        _say(type(error).__name__, error.strerror + (f": {error.filename}" if error.filename else ""))


def _say(kind: str, what: str) -> NoReturn:
    errors.print(f"[bold red]error[/] ({kind}): ", end="")
    errors.print(what, markup=False, highlight=False)
    sys.exit(2)
