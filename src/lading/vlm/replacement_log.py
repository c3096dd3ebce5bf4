"""Entries for a ledger from several processes.

A worker has a copy of the ledger, and what it writes there is lost with it. So the process that owns the ledger writes
into it at once, and workers append a line to a file, which the owner reads when the account is settled.
"""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lading.errors import ConfigError
from lading.ledger import Ledger
from lading.records import Dropped


class ReplacementLog:
    """Where replacements are written down; without a ledger, nowhere."""

    def __init__(self, ledger: Ledger | None) -> None:
        self.ledger = ledger
        self.owner = os.getpid()
        self.entries: list[Dropped] = []
        self.path: Path | None = None
        if ledger is not None:
            self._open()

    def __getstate__(self) -> dict[str, Any]:
        # The ledger of a large corpus is large, and a copy of it is of no use.
        return {"ledger": None, "owner": self.owner, "entries": [], "path": self.path}

    def start(self, ledger: Ledger | None) -> None:
        """Begin an epoch: what was noted is forgotten, and a new ledger takes the place of the old one."""
        self.entries.clear()
        if ledger is not None:
            self.ledger = ledger
        if self.path is not None:
            self.path.write_bytes(b"")
        elif self.ledger is not None:
            self._open()

    def write(self, entry: Dropped) -> None:
        """Note that a sample was replaced or dropped."""
        if os.getpid() == self.owner and self.ledger is not None:
            self.entries.append(entry)
            self.ledger.dropped(entry)
        elif self.path is not None:
            # One write of one line at the end of the file: lines of several workers do not mix.
            with self.path.open("ab", buffering=0) as file:
                file.write(json.dumps(entry.to_dict()).encode() + b"\n")

    def settle(self, trained: Iterable[int]) -> Ledger:
        """The ledger with these samples trained on, except for those that were replaced or dropped in any process."""
        if self.ledger is None or self.path is None:
            raise ConfigError(
                found="no ledger", wanted="one: PreTokenizedDatasetWrapper(…, ledger=Ledger(…))", where="account"
            )
        self.ledger.trained(list(trained))
        lines = self.path.read_bytes().splitlines()
        for entry in (*self.entries, *(Dropped.from_dict(json.loads(line)) for line in lines)):
            self.ledger.dropped(entry)
        return self.ledger

    def _open(self) -> None:
        handle, name = tempfile.mkstemp(prefix="lading-", suffix=".jsonl")
        os.close(handle)
        self.path = Path(name)
        weakref.finalize(self, _remove, self.path, self.owner)


def _remove(path: Path, owner: int) -> None:
    # A forked worker has this finaliser too; the file is not its own.
    if os.getpid() == owner:
        path.unlink(missing_ok=True)
