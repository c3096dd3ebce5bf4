"""The shared folder, where it is present: `LADING_SHARED`, or `../shared` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARED = Path(os.environ.get("LADING_SHARED", ROOT.parent / "shared"))

needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared folder at {SHARED.name}")


def processor_folder(name: str) -> Path:
    return SHARED / "processors" / name
