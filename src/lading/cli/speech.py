"""How much a command says besides its result: `-v`, `-q`, and where the lines and bars go.

Results go to the output stream; warnings, bars and everything that `-v` adds go to the error stream, so that a pipe
carries the result alone.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from lading.cli.show import errors, on_a_terminal
from lading.progress import Terminal, silent, watched_by

QUIET = -1
LEVELS = {QUIET: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
"""What is said, from quiet to everything (2)."""
HANDLER = "lading command"
"""The name of the handler that a command adds to the log."""


def _louder(context: typer.Context, verbose: int) -> int:
    if verbose and not context.params.get("quiet"):
        speak(context, min(verbose, max(LEVELS)))
    return verbose


def _quieter(context: typer.Context, quiet: bool) -> bool:
    if quiet:
        speak(context, QUIET)
    return quiet


Verbose = Annotated[
    int,
    typer.Option(
        "--verbose", "-v", count=True, show_default=False, callback=_louder, help="Say what is done; -vv: everything."
    ),
]
"""Every command takes this and `Quiet`; their callbacks do what they say, and no command looks at them."""
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", callback=_quieter, help="No bars and no warnings: results and errors alone.")
]


def speak(context: typer.Context, level: int) -> None:
    """From here to the end of the command, say as much as this. What is asked for last holds."""
    context.find_root().with_resource(speaking(level))


@contextmanager
def speaking(level: int) -> Iterator[None]:
    """Inside, the library's log and bars go to the error stream, as far as was asked for."""
    logger = logging.getLogger("lading")
    before = (logger.level, logger.handlers)
    logger.handlers = [*(own for own in logger.handlers if own.name != HANDLER), _handler(level)]
    logger.setLevel(LEVELS[level])
    try:
        with watched_by(silent if level == QUIET else Terminal(errors)):
            yield
    finally:
        logger.level, logger.handlers = before


def _handler(level: int) -> logging.Handler:
    """Coloured lines on a terminal; plain ones, as long as they are, in a file or a pipe."""
    handler: logging.Handler
    if on_a_terminal(errors):
        from rich.logging import RichHandler

        handler = RichHandler(console=errors, show_time=level > 0, show_path=False, log_time_format="%X")
    else:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(
            logging.Formatter(("%(asctime)s " if level > 0 else "") + "%(levelname)-8s %(message)s", "%X")
        )
    handler.name = HANDLER
    return handler
