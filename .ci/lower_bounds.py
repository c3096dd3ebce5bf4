"""Print the lowest versions that `lading` and its extras promise to run with, and the tools of its tests."""

import re
import sys
import tomllib
from pathlib import Path

EXTRAS = ("audio", "hub", "parquet")
TOOLS = ("hypothesis", "pytest", "pytest-xdist")

ROOT = Path(__file__).parents[1]


def lowest(requirement: str) -> str:
    """`av>=17` as `av==17`."""
    found = re.match(r"([\w-]+)>=([\d.]+)", requirement)
    if found is None:
        raise SystemExit(f"pyproject.toml promises no lowest version of {requirement!r}")
    return "==".join(found.groups())


project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
promised = [*project["dependencies"], *(entry for name in EXTRAS for entry in project["optional-dependencies"][name])]
tested = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
tools = [line for line in tested if line.partition("==")[0] in TOOLS]
sys.stdout.write("\n".join([*map(lowest, promised), *tools, ""]))
