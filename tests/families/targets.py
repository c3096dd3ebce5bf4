"""What the contract runs over: every family with its toy, and with its real processor folder where present."""

from __future__ import annotations

from functools import cache

import pytest

from lading import families, toy
from lading.loader import ProcessorFacts, load_processor, read_processor
from tests.support.shared import has_processor, real_processor

FOLDERS = {"internvl": "internvl3", "kimi_vl": "kimi_vl_sub"}
"""Real processor folders that are not named like their family. (Kimi-VL's loads as Kimi K2.5's class.)"""


def _toy(name: str) -> object:
    assert name in toy.recipes(), f"{name} has no toy: the contract cannot run over it"
    return pytest.param(("toy", name), id=f"{name}-toy", marks=pytest.mark.xdist_group(f"{name}-toy"))


def _real(name: str) -> object:
    missing = not has_processor(FOLDERS.get(name, name))
    reason = f"no real {name} processor in the shared folder"
    marks = [pytest.mark.xdist_group(f"{name}-real"), pytest.mark.skipif(missing, reason=reason)]
    return pytest.param(("real", name), id=f"{name}-real", marks=marks)


TARGETS = [target(name) for name in families.names() for target in (_toy, _real)]


@cache
def facts_of(target: tuple[str, str]) -> ProcessorFacts:
    kind, name = target
    return read_processor(load_processor(f"toy:{name}" if kind == "toy" else real_processor(FOLDERS.get(name, name))))
