"""Real processors and data of the shared folder: `LADING_SHARED`, or `../shared` beside the checkout.

A test asks for the very file that it needs, and is skipped by that name where it is not: a folder that happens to be
called `shared` may hold anything.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LADING_SHARED", ROOT.parent / "shared"))


def shared_data(name: str) -> Path:
    """A file, or a folder with files in it, of the shared data; without it the test that asks is skipped."""
    path = SHARED / "data" / name
    if not (path.is_file() or _has_files(path)):
        pytest.skip(f"no {path.relative_to(SHARED)} in the shared folder")
    return path


def real_processor(name: str) -> Path:
    """The folder of a real processor; without it the test that asks is skipped."""
    if not has_processor(name):
        pytest.skip(f"no processors/{name} in the shared folder")
    return SHARED / "processors" / name


def has_processor(name: str) -> bool:
    """Whether the shared folder has a real processor of this name."""
    return _has_files(SHARED / "processors" / name)


def _has_files(folder: Path) -> bool:
    return folder.is_dir() and any(path.is_file() for path in folder.iterdir())
