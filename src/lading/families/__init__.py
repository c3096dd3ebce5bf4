"""The families, by name. A family's file is imported when it is asked for, not before.

Other packages add theirs with an entry point in the group `lading.families`, whose value is a `Family`.

    >>> find("qwen2_5_vl").title
    'Qwen2.5-VL'
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from lading.errors import ConfigError, UnknownName
from lading.family import Family
from lading.fields import Field

logger = logging.getLogger(__name__)

GROUP = "lading.families"

BUILT_IN = (
    "gemma3",
    "gemma4",
    "internvl",
    "kimi_k25",
    "kimi_vl",
    "llava_onevision",
    "phi4_mm",
    "qwen2_5_vl",
    "qwen3_omni",
    "qwen3_vl",
    "smolvlm",
    "step3p7",
)
"""Module names in this folder, each with a `FAMILY`."""

OTHER_INPUTS: Mapping[str, Field] = {
    "pixel_attention_mask": Field(axis="image"),
    "spatial_shapes": Field(axis="image"),
    "input_features_mask": Field(axis="audio"),
}
"""Media inputs of models that no family is declared for: the pictures of LFM2-VL, the sounds of Gemma 3n."""


@cache
def _foreign() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


def names() -> tuple[str, ...]:
    """All family names, ours first."""
    return (*BUILT_IN, *(name for name in _foreign() if name not in BUILT_IN))


@cache
def find(name: str) -> Family:
    """The family of that name."""
    if name in BUILT_IN:
        return _checked(import_module(f"lading.families.{name}").FAMILY, name)
    if name in _foreign():
        return _checked(_foreign()[name].load(), name)
    raise UnknownName(kind="family", name=name, known=names())


def all_families() -> Iterator[Family]:
    """Every family, loaded."""
    return (find(name) for name in names())


def for_processor(class_name: str) -> Family | None:
    """The family a processor class belongs to; `None` for one that nobody declared."""
    return next((family for family in all_families() if class_name in family.processors), None)


def read_off(processor: Any) -> Family:
    """The family of a processor: the declared one, or one read off the processor itself, with a word about it."""
    from lading.families import default

    declared = for_processor(type(processor).__name__)
    if declared is not None:
        return declared
    family = default.derive(processor)
    logger.warning("%s is not declared; read off it: %s", type(processor).__name__, default.describe(family))
    return family


def table_for(names: Iterable[str]) -> Mapping[str, Field]:
    """What the rows of these media inputs count: the table of the first family that has all of them."""
    wanted = set(names)
    for family in all_families():
        if wanted <= set(family.table):
            return family.table
    raise UnknownName(kind="media inputs", name=", ".join(sorted(wanted)), known=media_inputs(), where="families")


def media_inputs(names: Iterable[str] = ()) -> dict[str, tuple[Field, ...]]:
    """Every media input there is, with all that its rows may count; of other packages' families, too.

    Given the names in a batch, only the families that have all of them are asked, where there are any.

    >>> [field.axis for field in media_inputs(["pixel_values", "pixel_values_local"])["pixel_values"]]
    ['image']
    """
    tables = [family.fields for family in all_families()]
    wanted = set(names)
    fitting = [table for table in tables if wanted and wanted <= table.keys()] or [*tables, OTHER_INPUTS]
    found: dict[str, dict[Field, None]] = {}
    for table in fitting:
        for name, field in table.items():
            found.setdefault(name, {})[field] = None
    return {name: tuple(fields) for name, fields in found.items()}


def _checked(family: object, name: str) -> Family:
    if not isinstance(family, Family):
        raise ConfigError(found=f"{type(family).__name__} under {GROUP}:{name}", wanted="a lading.family.Family")
    return family
