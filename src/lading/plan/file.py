"""A plan on disk: numpy's own archive, one array a name, and a line of JSON for the rest."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

from lading.errors import ConfigError
from lading.records import PackPlan

VERSION = 1
ARRAYS = ("members", "starts", "tokens", "order", "too_long")


def save_plan(plan: PackPlan, path: str | Path) -> None:
    """Write a plan; the name is taken as given."""
    path = Path(path)
    numbers = {
        "version": VERSION,
        "pack_size": plan.pack_size,
        "world_size": plan.world_size,
        "seed": plan.seed,
        "epoch": plan.epoch,
        "algorithm": plan.algorithm,
        "repeated": plan.repeated,
        "uncounted": plan.uncounted,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        np.savez(
            file,
            numbers=np.array(json.dumps(numbers)),
            members=plan.members,
            starts=plan.starts,
            tokens=plan.tokens,
            order=plan.order,
            too_long=plan.too_long,
        )


def load_plan(path: str | Path) -> PackPlan:
    """Read a plan that `save_plan` wrote."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            numbers = json.loads(str(archive["numbers"]))
            arrays = {name: archive[name] for name in ARRAYS}
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise ConfigError(
            found=f"{path}, which is no plan ({error})", wanted="a file of `lading plan --out`"
        ) from error
    if numbers.pop("version") != VERSION:
        raise ConfigError(found=f"a plan of another version in {path}", wanted=f"version {VERSION}")
    return PackPlan(**numbers, **arrays)
