"""A process whose error stream is a terminal, and what it wrote there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    code: int
    output: str
    terminal: str
    """What a person saw, escape codes included."""


def on_a_terminal(arguments: Sequence[str], timeout: float = 120) -> Done:
    """Run Python with a pseudo terminal as its error stream, and a pipe as its output."""
    own, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120"}
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=its, stdin=subprocess.DEVNULL, env=environment
    ) as process:
        os.close(its)
        seen = b""
        try:
            while piece := os.read(own, 4096):
                seen += piece
        except OSError:
            # Linux says so when the last one who had the terminal has closed it.
            pass
        finally:
            os.close(own)
        output, _ = process.communicate(timeout=timeout)
    return Done(code=process.returncode, output=output.decode(), terminal=seen.decode(errors="replace"))
