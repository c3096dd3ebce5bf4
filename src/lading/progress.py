"""How far long work is. Whoever works says it; whoever watches decides what a person sees of it.

As with logging, and for its reason: what works lies rooms below the person who waits, and knows of no terminal.

    silent     nothing: other ranks, `--quiet`, `Loader(progress=False)`
    logged     the default: a line of `logging` every half minute, and one at the end of what took long (level INFO)
    Terminal   rich's bar on the error stream, from two seconds on; `logged` where that is no terminal

    >>> with task("counting", 3) as advance:
    ...     advance(2)
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cached_property, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task

logger = logging.getLogger("lading")

DELAY = 2.0
"""Seconds after which work is long. What takes less shows nothing."""
EVERY = 30.0
"""Seconds between two lines of a log."""

Advance = Callable[[int], None]
"""Called with how much was done since the last call."""
Watcher = Callable[[str, int | None, str], AbstractContextManager[Advance]]
"""Called when work begins, with what it is, how much (`None`: nobody knows) and its unit (`bytes`, or none)."""


@contextmanager
def silent(what: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Nobody is told."""
    yield lambda done: None


@contextmanager
def logged(what: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Lines in the log: on the way, where it takes long, and at the end."""
    began = last_line = time.monotonic()
    done = 0

    def advance(more: int) -> None:
        nonlocal last_line, done
        done += more
        if time.monotonic() - last_line > EVERY:
            last_line = time.monotonic()
            logger.info("%s: %s", what, how_far(done, total, unit))

    yield advance
    seconds = time.monotonic() - began
    logger.log(logging.INFO if seconds > DELAY else logging.DEBUG, "%s took %.1f s", what, seconds)


_watcher: ContextVar[Watcher] = ContextVar("lading_progress", default=logged)


def task(
    what: str, total: int | None = None, unit: str = "", progress: Advance | None = None
) -> AbstractContextManager[Advance]:
    """Tell whoever watches (or `progress` in their place) that work began; inside, `advance` says how much is done."""
    return _watcher.get()(what, total, unit) if progress is None else nullcontext(progress)


@contextmanager
def watched_by(watcher: Watcher) -> Iterator[None]:
    """Inside, this one is told of all work."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def default_watcher(*, wanted: bool, rank: int = 0) -> Watcher:
    """Who watches work that a library was called for: the one who does already, else a terminal; of rank 0 alone."""
    if not wanted or rank:
        return silent
    return Terminal() if _watcher.get() is logged else _watcher.get()


@contextmanager
def bars_like_ours(shown: Callable[[], bool], hide: Callable[[], None], show: Callable[[], None]) -> Iterator[None]:
    """Inside, another library shows its own bars only where ours may be shown: `hide` and `show` are its switches."""
    watcher = _watcher.get()
    allowed = watcher.is_shown() if isinstance(watcher, Terminal) else watcher is not silent
    hidden = shown() and not allowed
    if hidden:
        hide()
    try:
        yield
    finally:
        if hidden:
            show()


def how_far(done: float, total: float | None, unit: str = "") -> str:
    """In words.

    >>> how_far(1500, 2_000_000), how_far(12, None), how_far(7_500_000, 2_000_000_000, "bytes")
    ('1,500 of 2,000,000', '12', '7.5 MB of 2.0 GB')
    """
    from rich.filesize import decimal

    written = decimal if unit == "bytes" else "{:,}".format
    return written(int(done)) if total is None else f"{written(int(done))} of {written(int(total))}"


class Terminal:
    """Bars on the error stream, one below the other where work is part of other work. They leave nothing behind.

    A process that was forked while somebody watched has no terminal of its own: there, work is only logged.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self._process = os.getpid()

    def __reduce__(self) -> tuple[object, ...]:
        # A terminal elsewhere is another one: what is pickled takes none of this one's locks and streams along.
        return (Terminal, ())

    def is_shown(self) -> bool:
        """Whether this is a terminal, and this process the one that it belongs to."""
        return self.console.is_terminal and os.getpid() == self._process

    @contextmanager
    def __call__(self, what: str, total: int | None, unit: str) -> Iterator[Advance]:
        """A bar, as soon as the work proves to be long: by a clock of its own, since work may say nothing at first."""
        with logged(what, total, unit) as log:
            if not self.is_shown():
                yield log
                return
            display = self._display
            bar = display.add_task(what, total=total, visible=False, unit=unit)

            def show() -> None:
                display.update(bar, visible=True)
                display.start()

            timer = threading.Timer(DELAY, show)
            timer.daemon = True
            timer.start()
            try:
                yield partial(display.advance, bar)
            finally:
                timer.cancel()
                timer.join()  # it may be about to show the bar
                display.remove_task(bar)
                if not display.tasks and display.live.is_started:
                    display.stop()

    @cached_property
    def _display(self) -> Progress:
        from rich import progress as bars
        from rich.text import Text

        class HowFar(bars.ProgressColumn):
            """As the log says it."""

            def render(self, task: Task) -> Text:
                return Text(how_far(task.completed, task.total, task.fields["unit"]) if task.total else "")

        times = (bars.TimeElapsedColumn(), "left:", bars.TimeRemainingColumn())
        return bars.Progress(
            *("{task.description}", bars.BarColumn(), HowFar(), *times),
            console=self.console,
            transient=True,
            refresh_per_second=5,
            # What is printed meanwhile stands above the bar; but what goes into a file stays out of the terminal.
            redirect_stdout=sys.stdout.isatty(),
        )
