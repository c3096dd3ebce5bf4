"""Examples as a user runs them: in processes of their own, with a limit."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import lading
from tests.support.shared import ROOT

EXAMPLES = ROOT / "examples"
LIMIT = 240.0
"""Seconds after which processes that wait for each other are given up."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a run printed, and how it ended; `code` is `None` where it had to be ended."""

    code: int | None
    out: str
    errors: str

    @property
    def losses(self) -> list[str]:
        """The loss of each step, as it was printed."""
        return re.findall(r"(?:^step \d+: loss |^\{'loss': ')([\d.]+)", self.out, re.MULTILINE)

    @property
    def checksums(self) -> list[str]:
        """What each rank says of its parameters."""
        (said,) = re.findall(r"^parameters, summed up on each rank: (.*)$", self.out, re.MULTILINE)
        return str(said).split()

    def check(self) -> Run:
        assert self.code == 0, f"{self.out}\n{self.errors}"
        return self


ABORTED = "terminate called without an active exception"
"""What a process of Python 3.11 says that a thread of gloo's, tidying up after the last exchange, ended while it left.
torch waits for these threads when a group is destroyed, but only if nobody keeps the group, and FSDP2's meshes do."""


def run(script: str | Path, *words: object, folder: Path, ranks: int = 0, limit: float = LIMIT) -> Run:
    """Run a script of `examples/` (or a path) in a folder; with `ranks`, by torchrun.

    A run that gloo aborted when its work was done is made once more; it says nothing about the script.
    """
    done = _run(script, *words, folder=folder, ranks=ranks, limit=limit)
    if done.code and ABORTED in done.errors:
        return _run(script, *words, folder=folder, ranks=ranks, limit=limit)
    return done


def _run(script: str | Path, *words: object, folder: Path, ranks: int, limit: float) -> Run:
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)] if ranks else []
    # One thread each: two ranks and the test share two cores. The library that is tested, wherever it lies.
    path = os.pathsep.join([str(Path(lading.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    process = subprocess.Popen(
        [sys.executable, *torchrun, str(EXAMPLES / script), *map(str, words)],
        cwd=folder, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        out, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own group, ranks included
        out, errors = process.communicate()
        return Run(code=None, out=out, errors=errors)
    return Run(code=process.returncode, out=out, errors=errors)
