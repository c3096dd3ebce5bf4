"""A state that was damaged is refused by name: it is never accepted, and never a stack trace of something else."""

import copy
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from lading import Loader, toy
from lading.errors import ConfigError

TOY = "toy:qwen2_5_vl"
NUMBERS = (-1, 0, 1, 2, 3, 10**6, 10**30, 1.5, float("nan"))
STRANGE: tuple[Any, ...] = (*NUMBERS, None, "", "7", True, False, [], {}, [None])
NO_JSON: tuple[Any, ...] = (
    *(b"x", {1}, {1: 2}, object(), 1j, range(3), np.array([]), np.float64(2), 10**5000, [10**5000], "\ud800"),
    *(torch.tensor([1, 2]), torch.tensor(1.5), torch.tensor(1, device="meta")),
)
"""What no JSON file could hold, but a pickled checkpoint can: numbers of thousands of digits, tensors on no device."""


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    meta = toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=60)
    return Loader(meta, TOY, pack_size=300, world_size=2, rank=0)


@pytest.fixture(scope="module")
def state(loader: Loader) -> dict[str, Any]:
    """A state in the middle of an epoch that two numbers of ranks trained on, with a picture that failed."""
    meta = loader.samples.corpus.sources[0].config.file.parent / "meta.json"
    broken = meta.parent / "media" / "shape-3.png"
    broken.write_bytes(broken.read_bytes()[:-40])
    for _ in zip(range(2), loader, strict=False):
        pass
    other = Loader(meta, TOY, pack_size=300, world_size=1)
    other.load_state_dict(loader.state_dict())
    for _ in other:
        if (state := other.state_dict())["dropped"]:
            return state
    pytest.fail("the broken picture was in none of the batches that were left")


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested values."""
    if path:
        yield path
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from places(child, (*path, name))


def changed(state: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    found = copy.deepcopy(state)
    inner: Any = found
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return found


def damages(state: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every place with something strange in it, gone, or with a stranger beside it."""
    for path in places(state):
        for value in STRANGE:
            damaged = changed(state, path, value)
            if json.dumps(damaged) != json.dumps(state):
                yield f"{path} = {value!r}", damaged
        gone = copy.deepcopy(state)
        inner: Any = gone
        for name in path[:-1]:
            inner = inner[name]
        del inner[path[-1]]
        yield f"without {path}", gone
    yield "with a stranger", {**state, "stranger": 1}
    yield "with a number for a name", {**state, 5: 1}


def test_a_damaged_state_is_refused_by_name(loader: Loader, state: dict[str, Any]) -> None:
    tried = dict(damages(state))
    accepted = [what for what, damaged in tried.items() if _accepts(loader, damaged)]
    assert (len(tried) > 300, accepted) == (True, [])
    loader.load_state_dict(state)


def test_what_only_a_pickled_checkpoint_can_hold_is_refused_by_name(loader: Loader, state: dict[str, Any]) -> None:
    tried = [(path, changed(state, path, value)) for path in places(state) for value in NO_JSON]
    assert (len(tried) > 300, [path for path, damaged in tried if _accepts(loader, damaged)]) == (True, [])
    assert [value for value in NO_JSON if _accepts(loader, value)] == []


def _accepts(loader: Loader, damaged: Any) -> bool:
    try:
        loader.load_state_dict(damaged)
    except ConfigError as error:
        return "nothing was loaded" not in str(error)
    return True


def test_a_state_of_the_version_before_goes_on_and_its_damage_is_no_stack_trace(
    loader: Loader, state: dict[str, Any]
) -> None:
    before = {name: value for name, value in state.items() if name != "digest"} | {"version": 2}
    loader.load_state_dict(before)
    for _, damaged in damages(before):
        with suppress(ConfigError):
            loader.load_state_dict(damaged)
    loader.load_state_dict(state)


@pytest.mark.parametrize("change", [{"stretches": []}, {"over": True}])
def test_a_state_of_the_version_before_leaves_nothing_out(
    loader: Loader, state: dict[str, Any], change: dict[str, Any]
) -> None:
    """It has no digest: without segments it would begin anew, and called over, the rest would never be trained on."""
    before = {name: value for name, value in state.items() if name != "digest"} | {"version": 2}
    assert not state["over"]
    with pytest.raises(ConfigError, match="nothing was loaded"):
        loader.load_state_dict({**before, **change})


def test_what_other_ways_to_save_make_of_numbers_is_read(loader: Loader, state: dict[str, Any]) -> None:
    saved = {**state, "epoch": np.int64(state["epoch"]), "stretches": tuple(state["stretches"])}
    loader.load_state_dict(saved)
    assert loader.state_dict() == _carried_on(loader, state)


def _carried_on(loader: Loader, state: dict[str, Any]) -> dict[str, Any]:
    loader.load_state_dict(state)
    return loader.state_dict()


def test_a_state_beyond_its_plan_is_refused(loader: Loader, state: dict[str, Any], tmp_path: Path) -> None:
    del tmp_path
    before = {name: value for name, value in state.items() if name != "digest"} | {"version": 2}
    with pytest.raises(ConfigError):
        loader.load_state_dict(changed(before, ("stretches", 0, "steps"), 999))
