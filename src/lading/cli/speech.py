"""How much a command says besides its result: `-v`, `-q`, and where the lines and bars go.

Results go to the output stream; warnings, bars and everything that `-v` adds go to the error stream, so that a pipe
carries the result alone.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Annotated, Any, NamedTuple

import typer
from rich.logging import RichHandler

from lading.cli.show import errors
from lading.progress import Terminal, silent, watched_by

LEVELS = {-1: logging.ERROR, 0: logging.WARNING, 1: logging.INFO, 2: logging.DEBUG}
"""What is said, from quiet (-1) to everything (2)."""

Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, show_default=False, help="Say what is done; -vv: everything.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No bars and no warnings: results and errors alone.")]


class _Asked(NamedTuple):
    verbose: int = 0
    quiet: bool = False

    @property
    def level(self) -> int:
        return -1 if self.quiet else min(self.verbose, max(LEVELS))


NOTHING = _Asked()
_asked: ContextVar[_Asked] = ContextVar("lading_speech", default=NOTHING)


def ask(verbose: Verbose = 0, quiet: Quiet = False) -> None:
    """What stands before the command's name holds too: `lading -v plan …`."""
    _asked.set(_Asked(verbose, quiet))


class Commands(typer.Typer):
    """Commands that all take `-v` and `-q`, without a word about it in any of them."""

    def command(self, *args: Any, **options: Any) -> Any:
        """Register a command."""
        register = super().command(*args, **options)
        return lambda function: register(heard(function))


def heard(function: Callable[..., Any]) -> Callable[..., Any]:
    """A command with `-v` and `-q` behind its own options."""

    @wraps(function)
    def run(*args: Any, verbose: int, quiet: bool, **options: Any) -> Any:
        before = _asked.get()
        with speaking(_Asked(verbose, quiet) if verbose or quiet else before):
            return function(*args, **options)

    own = inspect.signature(function, eval_str=True)
    both = inspect.signature(ask, eval_str=True).parameters.values()
    added = [option.replace(kind=inspect.Parameter.KEYWORD_ONLY) for option in both]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *added])  # type: ignore[attr-defined]  # typer reads it
    run.__annotations__ = {**function.__annotations__, "verbose": Verbose, "quiet": Quiet}
    return run


@contextmanager
def speaking(asked: _Asked) -> Iterator[None]:
    """Inside, the library's log and bars go to the error stream, as far as was asked for."""
    logger = logging.getLogger("lading")
    handler = RichHandler(console=errors, show_time=asked.level > 0, show_path=False, log_time_format="%X")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(LEVELS[asked.level])
    try:
        with watched_by(silent if asked.quiet else Terminal(errors)):
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
