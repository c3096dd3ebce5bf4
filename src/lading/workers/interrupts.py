"""Ctrl-C while processes are started is met once they are.

Python runs hooks around every fork, and what is raised in one of them is printed and forgotten: so would be a Ctrl-C
that comes just then, and the run would go on as if nobody had asked it to end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTS = {signal.SIGINT, signal.SIGTERM}


@contextmanager
def interrupts_afterwards() -> Iterator[None]:
    """What asks this process to end, and is answered by Python, is answered behind the block.

    Signals are not blocked for that: a library's thread would take them all the same. Processes forked in the block
    do not answer them either: who interrupts this one has it end them. (Only the main thread may say how.)
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)

    answers = {number: signal.getsignal(number) for number in INTERRUPTS}
    answers = {number: answer for number, answer in answers.items() if callable(answer)}
    try:
        for number in answers:
            signal.signal(number, hear)
        yield
    finally:
        for number, answer in answers.items():
            signal.signal(number, answer)
        for first in heard[:1]:
            signal.raise_signal(first)
