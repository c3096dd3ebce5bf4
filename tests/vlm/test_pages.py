"""The front door has every name of the five pages, with the parameters, order and defaults given there."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from tests.vlm.pages import PAGES

NAMES = [(module, name) for module, names in PAGES.items() for name in names]


def member(module: str, name: str) -> Any:
    return getattr(import_module(f"lading.vlm.{module}"), name)


def signature(thing: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(thing).parameters.values())


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES])
def test_a_name_is_there_as_the_page_says(module: str, name: str) -> None:
    thing, said = member(module, name), PAGES[module][name]
    if isinstance(said, str):
        if said not in ("constant",) and not said.startswith("class"):
            assert thing == said
        return
    own = [parameter for parameter in signature(thing) if parameter.kind is not inspect.Parameter.VAR_KEYWORD]
    wanted = [text for text in said if not text.startswith("**")]
    for parameter, text in zip(own, wanted, strict=False):
        word, _, default = text.partition("=")
        assert parameter.name == word
        if default:
            assert parameter.default == eval(default), f"{name}({word})"
        else:
            assert parameter.default is inspect.Parameter.empty, f"{name}({word})"
    assert len(own) >= len(wanted)
    assert all(extra.default is not inspect.Parameter.empty for extra in own[len(wanted) :]), "additions have defaults"
    if any(text.startswith("**") for text in said):
        assert signature(thing)[-1].kind is inspect.Parameter.VAR_KEYWORD


def test_all_sixty_five_are_walked() -> None:
    assert len(NAMES) == 65
