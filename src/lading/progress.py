"""How far long work is. Whoever works says it; whoever watches decides what a person sees of it.

As with logging, and for its reason: finding rows, counting and planning happen rooms below the person who waits, and
none of those rooms should know whether there is a terminal.

    silent     nothing: other ranks, `--quiet`, `Loader(progress=False)`
    logged     the default: a line of `logging` every half minute, and one at the end of what took long (level INFO)
    Terminal   a bar on the error stream, two seconds after the work began; `logged` where that is no terminal

Work says what it is, how much there is of it, and how much is done:

    >>> with task("counting", 3) as advance:
    ...     advance(2)
    ...     advance(1)
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, Task, TaskID

logger = logging.getLogger("lading")

DELAY = 2.0
"""Seconds after which work is long. What takes less shows nothing."""
EVERY = 30.0
"""Seconds between two lines of a log."""

Advance = Callable[[int], None]
"""Called with how much was done since the last call."""


class Watcher(Protocol):
    """Somebody who is told of work that begins, and how far it is."""

    def __call__(self, what: str, total: int | None, unit: str) -> AbstractContextManager[Advance]:
        """`total` is `None` where nobody knows; `unit` is what it counts, where that is not plain to see (`bytes`)."""
        ...


@contextmanager
def silent(what: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Nobody is told."""
    del what, total, unit
    yield lambda done: None


@contextmanager
def logged(what: str, total: int | None, unit: str) -> Iterator[Advance]:
    """Lines in the log: on the way, where it takes long, and at the end."""
    begun = said = time.monotonic()
    far = 0

    def advance(done: int) -> None:
        nonlocal said, far
        far += done
        if time.monotonic() - said > EVERY:
            said = time.monotonic()
            logger.info("%s: %s", what, how_far(far, total, unit))

    yield advance
    seconds = time.monotonic() - begun
    logger.log(logging.INFO if seconds > DELAY else logging.DEBUG, "%s took %.1f s", what, seconds)


_watcher: ContextVar[Watcher] = ContextVar("lading_progress", default=logged)


@contextmanager
def task(what: str, total: int | None = None, unit: str = "") -> Iterator[Advance]:
    """Tell whoever watches that this work began; inside, `advance` says how much more of it is done."""
    with _watcher.get()(what, total, unit) as advance:
        yield advance


@contextmanager
def told(progress: Advance | None, what: str, total: int) -> Iterator[Advance]:
    """A task, unless the caller brought somebody of their own to tell."""
    if progress is not None:
        yield progress
        return
    with task(what, total) as advance:
        yield advance


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
    present = _watcher.get()
    return Terminal() if present is logged else present


def bars_are_shown() -> bool:
    """Whether a person may be shown bars: not where nobody watches, and not in a pipe; else, that is for others to say.

    >>> with watched_by(silent):
    ...     bars_are_shown()
    False
    """
    watcher = _watcher.get()
    return watcher.is_shown() if isinstance(watcher, Terminal) else watcher is not silent


@contextmanager
def bars_like_ours(shown: Callable[[], bool], hide: Callable[[], None], show: Callable[[], None]) -> Iterator[None]:
    """Inside, another library shows its own bars only where ours may be shown: `hide` and `show` are its switches."""
    hidden = shown() and not bars_are_shown()
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

    def said(number: float) -> str:
        return decimal(int(number)) if unit == "bytes" else f"{int(number):,}"

    return said(done) if total is None else f"{said(done)} of {said(total)}"


class Terminal:
    """Bars on the error stream, one below the other where work is part of other work. They leave nothing behind.

    A process that was forked while somebody watched has no terminal of its own: there, work is only logged.
    """

    def __init__(self, console: Console | None = None) -> None:
        from rich.console import Console

        self.console = console or Console(stderr=True)
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._open: set[TaskID] = set()
        self._display: Progress | None = None

    def __reduce__(self) -> tuple[object, ...]:
        # A terminal elsewhere is another one: what is pickled takes none of this one's locks and streams along.
        return (Terminal, ())

    @contextmanager
    def __call__(self, what: str, total: int | None, unit: str) -> Iterator[Advance]:
        """A bar, as soon as the work proves to be long."""
        with logged(what, total, unit) as log:
            if not self.is_shown():
                yield log
                return
            display, bar = self._begin(what, total, unit)
            # A clock of its own: work may say nothing at all in its first seconds.
            timer = threading.Timer(DELAY, self._show, [bar])
            timer.daemon = True
            timer.start()
            try:
                yield partial(display.advance, bar)
            finally:
                timer.cancel()
                self._end(bar)

    def is_shown(self) -> bool:
        """Whether this is a terminal, and this process the one that it belongs to."""
        return self.console.is_terminal and os.getpid() == self._process

    def _begin(self, what: str, total: int | None, unit: str) -> tuple[Progress, TaskID]:
        with self._lock:
            self._display = self._display or _display(self.console)
            bar = self._display.add_task(what, total=total, visible=False, unit=unit)
            self._open.add(bar)
            return self._display, bar

    def _show(self, bar: TaskID) -> None:
        with self._lock:
            if bar in self._open and self._display is not None:
                self._display.update(bar, visible=True)
                self._display.start()

    def _end(self, bar: TaskID) -> None:
        with self._lock:
            self._open.discard(bar)
            if self._display is None:
                return
            self._display.remove_task(bar)
            if not self._open:
                if self._display.live.is_started:
                    self._display.stop()
                self._display = None


def _display(console: Console) -> Progress:
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class HowFar(ProgressColumn):
        """As the log says it."""

        def render(self, task: Task) -> Text:
            return Text(how_far(task.completed, task.total, task.fields["unit"]) if task.total else "")

    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), HowFar(), TimeElapsedColumn()]
    return Progress(
        *columns,
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        refresh_per_second=5,
        # What is printed meanwhile stands above the bar; but what goes into a file stays out of the terminal.
        redirect_stdout=sys.stdout.isatty(),
    )
