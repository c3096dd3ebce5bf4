"""Plain values from a checkpoint or a file, read back with their types and ranges checked, each refused by its place.

>>> whole({"steps": "3"}["steps"], "steps")
Traceback (most recent call last):
    ...
lading.errors.ConfigError: found '3' as steps; wanted a whole number from 0 up; nothing was loaded
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from typing import Any, Final

from lading.errors import ConfigError

LARGEST: Final = (1 << 63) - 1
SHOWN: Final = 60
"""Characters of a value that a refusal shows."""


def refused(value: object, place: str, wanted: str) -> ConfigError:
    """What is wrong with a value."""
    return ConfigError(found=f"{_shown(value)} as {place}", wanted=wanted, consequence="nothing was loaded")


def _shown(value: object) -> str:
    try:
        shown = repr(value)
    except (ValueError, RuntimeError):  # a number of thousands of digits; what cannot say what it is
        return f"a {type(value).__name__} that cannot be shown"
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"


def whole(value: Any, place: str, *, least: int = 0, most: int = LARGEST) -> int:
    """A whole number within bounds; some ways to save a checkpoint make numpy's of Python's."""
    try:
        number = None if isinstance(value, bool) else value.__index__()
    except (AttributeError, TypeError, ValueError, RuntimeError):  # tensors of several numbers, or on no device
        number = None
    if number is None or not least <= number <= most:
        bound = f"from {least} up" if most == LARGEST else f"from {least} to {most:,}"
        raise refused(value, place, f"a whole number {bound}")
    return int(number)


def text(value: Any, place: str) -> str:
    """A text."""
    if not isinstance(value, str):
        raise refused(value, place, "a text")
    return value


def flag(value: Any, place: str) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise refused(value, place, "true or false")
    return value


def listed(value: Any, place: str) -> list[Any]:
    """A list; a tuple is one."""
    if not isinstance(value, (list, tuple)):
        raise refused(value, place, "a list")
    return list(value)


def named(value: Any, place: str, names: Collection[str] | None = None) -> dict[str, Any]:
    """Values by name: exactly these names, or any."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
        raise refused(value, place, "values by name")
    if names is not None and set(value) != set(names):
        missing, strange = sorted(set(names) - set(value)), sorted(set(value) - set(names))
        wrong = [f"no {', '.join(missing)}"] if missing else []
        wrong += [f"the unknown {', '.join(strange)}"] if strange else []
        raise ConfigError(
            found=f"{place} with {' and '.join(wrong)}", wanted=", ".join(names), consequence="nothing was loaded"
        )
    return dict(value)


def digest(value: Mapping[str, Any]) -> str:
    """A short name for plain values: whatever is changed in them changes it."""
    content = json.dumps(value, sort_keys=True, default=lambda number: number.__index__())
    return hashlib.blake2b(content.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
