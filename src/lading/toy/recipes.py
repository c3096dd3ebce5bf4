"""The toys, by family name. A recipe's file is imported when it is asked for."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, Protocol, cast

from lading.errors import UnknownName
from lading.families import BUILT_IN

PREFIX = "toy:"


class Recipe(Protocol):
    """What a recipe's module has."""

    def make_processor(self) -> Any:
        """A small processor of the family's own class."""
        ...

    def make_model(self, processor: Any) -> Any:
        """A small model of the family's own class, for that processor."""
        ...


def recipes() -> tuple[str, ...]:
    """Families that have a toy: all of our own. Each has a module of its name in this folder, a `Recipe`."""
    return BUILT_IN


def _recipe(name: str) -> Recipe:
    if name not in BUILT_IN:
        raise UnknownName(kind="toy", name=name, known=BUILT_IN)
    return cast(Recipe, import_module(f"lading.toy.{name}"))


@cache
def processor(name: str) -> Any:
    """The toy processor of a family. Made once; treat it as frozen."""
    return _recipe(name).make_processor()


def model(name: str, *, seed: int = 0) -> Any:
    """A small model of a family, with random weights drawn from `seed`; the global generator is left as it was."""
    return fitted(name, processor(name), seed=seed)


def fitted(name: str, processor: Any, *, seed: int = 0) -> Any:
    """The same for any processor of the family, a real one too: its vocabulary, its tokens, its tiles and patches."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return _recipe(name).make_model(processor)
