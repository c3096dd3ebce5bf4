r"""A plan on disk: one file that every process maps into memory, and none has to read.

lading plan 3\n          which format this is
{"pack_size": …}\n       one line of JSON: the numbers, the arrays' types, shapes and places, the fingerprint
members, starts, …        the arrays as they are in memory, each at a multiple of 64 bytes
"""

from __future__ import annotations

import json
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lading.cache import replacing
from lading.errors import ConfigError
from lading.plan.fingerprint import plan_fingerprint
from lading.records import PackPlan

MAGIC: Final = b"lading plan 3\n"
NAMES: Final = tuple(field.name for field in fields(PackPlan))
ALIGNED: Final = 64


def save_plan(plan: PackPlan, path: str | Path) -> None:
    """Write a plan; the name is taken as given. The file is there whole or not at all."""
    values = dict(zip(NAMES, attrgetter(*NAMES)(plan), strict=True))
    arrays = {name: _compact(value) for name, value in values.items() if isinstance(value, np.ndarray)}
    numbers = {name: value for name, value in values.items() if name not in arrays}
    header = {**numbers, "fingerprint": plan_fingerprint(plan), "arrays": _places(arrays)}
    with replacing(Path(path)) as file:
        file.write(MAGIC + json.dumps(header).encode() + b"\n")
        for array in arrays.values():
            file.write(b"\0" * (-file.tell() % ALIGNED))
            array.tofile(file)


def load_plan(path: str | Path, *, check: bool = False) -> PackPlan:
    """Map a plan that `save_plan` wrote. With `check`, it is read through and compared with its fingerprint."""
    path = Path(path)
    try:
        header, first = _header(path)
        arrays: dict[str, Any] = {name: _mapped(path, place, first) for name, place in header.pop("arrays").items()}
        fingerprint = header.pop("fingerprint")
        plan = PackPlan(**header, **arrays)
    except OSError as error:
        raise ConfigError(found=f"{path}, which cannot be read ({error.strerror})", wanted="a plan") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            found=f"{path}, which is no plan of this version ({error})", wanted="a file of `lading plan --out`"
        ) from error
    if check and plan_fingerprint(plan) != fingerprint:
        raise ConfigError(
            found=f"a plan in {path} that is not what was written",
            wanted=f"one with the fingerprint {fingerprint}",
            consequence="the file is damaged; make it again",
        )
    return plan


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The line of numbers, and where the first array begins."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"it does not begin with {MAGIC.decode().strip()!r}")
        header = json.loads(file.readline())
        return header, file.tell() + -file.tell() % ALIGNED


def _mapped(path: Path, place: dict[str, Any], first: int) -> NDArray[Any]:
    shape = tuple(place["shape"])
    if 0 in shape:
        return np.zeros(shape, dtype=place["type"])
    return np.memmap(path, dtype=place["type"], mode="r", offset=first + place["offset"], shape=shape)


def _places(arrays: dict[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Type, shape and place of each array, counted from the first."""
    places, offset = {}, 0
    for name, array in arrays.items():
        places[name] = {"type": array.dtype.str, "shape": array.shape, "offset": offset}
        offset += array.nbytes + -array.nbytes % ALIGNED
    return places


def _compact(array: NDArray[Any]) -> NDArray[Any]:
    """In half the bytes where nothing is lost that counts: numbers below 2³² and costs to seven digits."""
    if array.dtype.kind == "f":
        return array.astype("<f4")
    fits = not array.size or int(array.max()) < 1 << 32
    return array.astype("<u4" if fits else "<i8")
