"""One run of one side, in a process of its own: `python -m benchmarks.child ROW FUNCTION JOB.json OUT.json`."""

from __future__ import annotations

import json
import logging
import os
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.row import Job


def main(row: str, function: str, job_file: str, out: str) -> None:
    """Do the work and write its figures."""
    logging.disable(logging.WARNING)
    os.environ["HF_HUB_OFFLINE"] = "1"
    said = json.loads(Path(job_file).read_text(encoding="utf-8"))
    job = Job(
        inputs=Path(said["inputs"]),
        common=Path(said["common"]),
        scratch=Path(said["scratch"]),
        small=said["small"],
        shared=Path(said["shared"]) if said["shared"] else None,
    )
    figures = vars(import_module(f"benchmarks.rows.{row}"))[function](job)
    Path(out).write_text(json.dumps(dict(figures)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
