r"""A plan on disk: one file that every process maps into memory, and none has to read.

lading plan 4\n          which format this is
{"pack_size": …}\n       one line of JSON: the numbers, the arrays' types, shapes and places, digests of all of it
members, starts, …        the arrays as they are in memory, each at a multiple of 64 bytes
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from lading import plain
from lading.addresses import refuse_address
from lading.cache import replacing
from lading.errors import ConfigError
from lading.records import PackPlan

MAGIC: Final = b"lading plan 4\n"
NAMES: Final = tuple(field.name for field in fields(PackPlan))
TEXTS: Final = ("algorithm", "placing", "lengths")
DIMENSIONS: Final[Mapping[str, int]] = {"members": 1, "starts": 1, "tokens": 1, "costs": 2, "order": 2, "too_long": 1}
"""The arrays of a plan, and how many axes each has."""
WHOLE, BROKEN = ("<u4", "<i8"), ("<f4",)
"""The types of arrays of whole numbers, and of costs."""
ALIGNED: Final = 64
LONGEST_HEADER: Final = 1 << 16
PIECE: Final = 1 << 24
"""Bytes hashed at a time."""


def save_plan(plan: PackPlan, path: str | Path) -> None:
    """Write a plan; the name is taken as given. The file is there whole or not at all."""
    values = dict(zip(NAMES, attrgetter(*NAMES)(plan), strict=True))
    arrays = {name: _compact(values.pop(name)) for name in DIMENSIONS}
    header = {**values, "arrays": _places(arrays)}
    header["digests"] = {"header": plain.digest(header), **{name: _digest(array) for name, array in arrays.items()}}
    with replacing(Path(path)) as file:
        file.write(MAGIC + json.dumps(header).encode() + b"\n")
        for array in arrays.values():
            file.write(b"\0" * (-file.tell() % ALIGNED))
            array.tofile(file)


def load_plan(path: str | Path, *, check: bool = False) -> PackPlan:
    """Map a plan that `save_plan` wrote. With `check`, it is read through and compared with its digests."""
    refuse_address(path, wanted="a plan")
    path = Path(path)
    try:
        header, first = _header(path)
        digests = plain.named(header.pop("digests", None), "digests", ("header", *DIMENSIONS))
        if plain.digest(header) != digests["header"]:
            _damaged(path, "its first lines")
        places = plain.named(header.pop("arrays", None), "arrays", DIMENSIONS)
        numbers = plain.named(header, "the numbers of a plan", set(NAMES) - set(DIMENSIONS))
        arrays = {name: _mapped(path, name, place, first) for name, place in places.items()}
    except OSError as error:
        raise ConfigError(found=f"{path}, which cannot be read ({error.strerror})", wanted="a plan") from error
    except (ValueError, RecursionError) as error:  # the second: brackets in brackets, where a header should be
        if isinstance(error, ConfigError) and error.where:
            raise
        said = error.found if isinstance(error, ConfigError) else str(error)
        raise ConfigError(
            found=f"{path}, which is no plan of this version ({said})",
            wanted="a file of `lading plan --out`",
            consequence="make it again",
        ) from error
    for name, array in arrays.items() if check else ():
        if _digest(array) != digests[name]:
            _damaged(path, name)
    known = {
        name: plain.text(value, name) if name in TEXTS else plain.whole(value, name) for name, value in numbers.items()
    }
    plan = PackPlan(**known, **arrays)  # type: ignore[arg-type]  # the names were compared with the record's
    if check:
        _refuse_loose_ends(path, plan)
    return plan


def _refuse_loose_ends(path: Path, plan: PackPlan) -> None:
    """Refuse packs that do not make up a plan, though their digests are right: whoever wrote them was no planner."""
    starts = plan.starts.astype(np.int64)
    ends = len(starts) > 0 and starts[0] == 0 and starts[-1] == len(plan.members) and bool((np.diff(starts) > 0).all())
    if not ends or {len(plan.tokens), len(plan.costs)} != {len(plan)}:
        _damaged(path, "starts")
    for name, numbers, most in (
        ("members", plan.members, plan.samples - 1),
        ("too_long", plan.too_long, plan.samples - 1),
        ("order", plan.order, len(plan) - 1),
        ("tokens", plan.tokens, plan.pack_size),
    ):
        if numbers.size and not 0 <= int(numbers.min()) <= int(numbers.max()) <= most:
            _damaged(path, name)
    placed = len(plan.members) + len(plan.too_long)
    known = np.zeros(1 + max(int(plan.members.max(initial=0)), int(plan.too_long.max(initial=0))), dtype=bool)
    known[plan.members] = True
    known[plan.too_long] = True
    if int(known.sum()) != placed or placed + plan.uncounted != plan.samples:
        _damaged(path, "members")
    if not (np.isfinite(plan.costs).all() and (plan.costs >= 0).all()):
        _damaged(path, "costs")
    repeats = plan.order.size - len(plan)
    if plan.order.shape[1] != plan.world_size or repeats != plan.repeated or repeats >= max(1, plan.world_size):
        _damaged(path, "order")
    if len(np.unique(plan.order.ravel()[: len(plan)])) != len(plan):
        _damaged(path, "order")


def _damaged(path: Path, what: str) -> NoReturn:
    raise ConfigError(
        found=f"a plan whose {what} are not what was written",
        wanted="the file as `lading plan --out` wrote it",
        consequence="it is damaged; make it again",
        where=str(path),
    )


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """The line of numbers, and where the first array begins."""
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"it does not begin with {MAGIC.decode().strip()!r}")
        header = json.loads(file.readline(LONGEST_HEADER))
        return plain.named(header, "the first line"), file.tell() + -file.tell() % ALIGNED


def _mapped(path: Path, name: str, place: Any, first: int) -> NDArray[Any]:
    entry = plain.named(place, f"the place of {name}", ("type", "shape", "offset"))
    known = BROKEN if name == "costs" else WHOLE
    if entry["type"] not in known:
        raise plain.refused(entry["type"], f"the type of {name}", " or ".join(known))
    shape = tuple(plain.whole(size, f"the shape of {name}") for size in plain.listed(entry["shape"], f"{name}: shape"))
    offset = first + plain.whole(entry["offset"], f"the place of {name}")
    if len(shape) != DIMENSIONS[name]:
        raise plain.refused(entry["shape"], f"the shape of {name}", f"{DIMENSIONS[name]} numbers")
    if 0 in shape:
        return np.zeros(shape, dtype=entry["type"])
    if offset + math.prod(shape) * np.dtype(entry["type"]).itemsize > path.stat().st_size:
        raise ValueError(f"{name} ends behind the file")
    return np.memmap(path, dtype=entry["type"], mode="r", offset=offset, shape=shape)


def _places(arrays: dict[str, NDArray[Any]]) -> dict[str, dict[str, Any]]:
    """Type, shape and place of each array, counted from the first."""
    places, offset = {}, 0
    for name, array in arrays.items():
        places[name] = {"type": array.dtype.str, "shape": list(array.shape), "offset": offset}
        offset += array.nbytes + -array.nbytes % ALIGNED
    return places


def _digest(array: NDArray[Any]) -> str:
    digested = hashlib.blake2b(digest_size=8)
    content = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    for start in range(0, len(content), PIECE):
        digested.update(content[start : start + PIECE].data)
    return digested.hexdigest()


def _compact(array: NDArray[Any]) -> NDArray[Any]:
    """In half the bytes where nothing is lost that counts: numbers below 2³² and costs to seven digits."""
    if array.dtype.kind == "f":
        return array.astype("<f4")
    fits = not array.size or int(array.max()) < 1 << 32
    return array.astype("<u4" if fits else "<i8")
