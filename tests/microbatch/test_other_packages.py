"""Batches of a family from another package, cut for pipeline stages by its declaration alone.

Everything is made in a process of its own, in which the package is installed: each test is a function that runs there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.other_package import install
from tests.support.shared import ROOT

ROWS, MICROBATCHES = 4, 2
NAMES = ("berth_depth", "berth_scale", "pixel_values")


def processor_of(name: str) -> Any:
    import copy

    from lading import toy

    own = copy.deepcopy(toy.processor("qwen2_5_vl"))
    own.__class__ = type(name, (type(own),), {})
    return own


def loader_of(meta: str, name: str) -> Any:
    from lading import Loader

    rows = {"batch_size": ROWS, "microbatches": MICROBATCHES}
    return Loader(meta, processor_of(name), pack_size=300, cache=False, progress=False, **rows)


def examples_of(meta: str) -> list[Any]:
    """Two pictures in each of two samples, none in two: four for four rows, and not one each."""
    from lading.vlm.datasets import make_meta_dataset

    examples = make_meta_dataset(meta)
    return [examples[number] for number in (24, 25, 50, 51)]


def fits(depth: Any, scale: Any, pixels: Any) -> bool:
    """Whether depths and scales are those of these very pictures."""
    import torch

    same = torch.equal(depth, pixels.sum(dim=1, keepdim=True))
    return same and int(scale.sum()) == len(pixels)


def cut_from_loader(meta: str) -> dict[str, Any]:
    found: dict[str, Any] = {"images": [], "fits": []}
    for batch in loader_of(meta, "BerthProcessor"):
        for piece in batch.microbatches:
            images = sum(len(document.footprints("image")) for row in piece.rows for document in row)
            found["images"].append([images, len(piece.inputs.get("berth_scale", ()))])
            if images:
                found["fits"].append(fits(*(piece.inputs[name] for name in NAMES)))
    return found


def cut_from_pages(meta: str) -> dict[str, Any]:
    from lading.vlm.collate_fns import default_collate_fn
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    batch = default_collate_fn(examples_of(meta), processor_of("BerthProcessor"))
    counts = batch["n_images_per_sample"].tolist()
    ready = prepare_vlm_media_for_pp(batch, ROWS, MICROBATCHES)
    chunks = ready[VLM_PP_MEDIA_KEY]
    return {
        "counts": counts,
        "scales": [0 if own is None else len(own) for own in chunks["berth_scale"]],
        "fits": fits(*(chunks[name][0] for name in NAMES)),
        "left": sorted(name for name in ready if name.startswith(("berth", "n_"))),
    }


def cut_from_packs(meta: str) -> dict[str, Any]:
    from lading.vlm.collate_fns import neat_packed_vlm_collater
    from lading.vlm.datasets import PreTokenizedDatasetWrapper
    from lading.vlm.neat_packing_vlm import PackedDatasetWrapper
    from lading.vlm.pp_media import VLM_PP_MEDIA_KEY, prepare_vlm_media_for_pp

    samples = PreTokenizedDatasetWrapper(examples_of(meta), processor_of("BerthProcessor"))
    packed = PackedDatasetWrapper(samples, [[0, 1], [2], [3], [1]], pack_size=4000)
    packs = [packed[number] for number in range(ROWS)]
    batch = neat_packed_vlm_collater(packs, attn_implementation="flash_attention_2")
    chunks = prepare_vlm_media_for_pp(batch, ROWS, MICROBATCHES)[VLM_PP_MEDIA_KEY]
    own = [fits(*(chunks[name][piece] for name in NAMES)) for piece in (0, 1)]
    return {"fits": own, "scales": [len(part) for part in chunks["berth_scale"]]}


def forgotten_in_loader(meta: str) -> dict[str, Any]:
    from lading.errors import ExactnessError

    try:
        list(loader_of(meta, "ForgetfulProcessor"))
    except ExactnessError as error:
        return {"error": str(error)}
    return {"error": ""}


def forgotten_in_batch(meta: str) -> dict[str, Any]:
    """A tensor that is put into a batch that was good."""
    from dataclasses import replace

    import torch

    from lading.errors import ConfigError, ExactnessError
    from lading.vlm.collate_fns import default_collate_fn
    from lading.vlm.pp_media import prepare_vlm_media_for_pp

    said: dict[str, Any] = {}
    batch = next(iter(loader_of(meta, "BerthProcessor")))
    try:
        _ = replace(batch, inputs={**batch.inputs, "berth_noise": torch.zeros(8)}).microbatches
    except ExactnessError as error:
        said["record"] = str(error)
    made = default_collate_fn(examples_of(meta), processor_of("BerthProcessor"))
    try:
        prepare_vlm_media_for_pp({**made, "berth_noise": torch.zeros(8)}, ROWS, MICROBATCHES)
    except ConfigError as error:
        said["dictionary"] = str(error)
    return said


def forgotten_in_pages(meta: str) -> dict[str, Any]:
    from lading.errors import ExactnessError
    from lading.vlm.collate_fns import default_collate_fn

    try:
        default_collate_fn(examples_of(meta), processor_of("ForgetfulProcessor"))
    except ExactnessError as error:
        return {"error": str(error)}
    return {"error": ""}


CASES: tuple[Callable[[str], dict[str, Any]], ...] = (
    cut_from_loader,
    cut_from_pages,
    cut_from_packs,
    forgotten_in_loader,
    forgotten_in_batch,
    forgotten_in_pages,
)


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory, toy_meta: Path) -> Any:
    """What every case found, in a process in which the package is installed."""
    site = install(tmp_path_factory.mktemp("site"))
    path = os.pathsep.join([str(site), str(ROOT / "src"), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.microbatch.test_other_packages", str(toy_meta)],
        capture_output=True, text=True, check=False, timeout=300, cwd=ROOT, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_the_loader_cuts_by_its_declaration(seen: dict[str, Any]) -> None:
    found = seen["cut_from_loader"]
    assert all(found["fits"])
    assert all(documents == rows for documents, rows in found["images"])
    assert len({images for images, _ in found["images"]}) > 1, "microbatches with as many pictures show nothing"


def test_the_pages_functions_cut_by_its_declaration(seen: dict[str, Any]) -> None:
    found = seen["cut_from_pages"]
    assert found["counts"] == [2, 2, 0, 0]
    assert found["scales"] == [4, 0]
    assert found["fits"]
    assert found["left"] == []


def test_packs_of_the_pages_are_cut_by_its_declaration(seen: dict[str, Any]) -> None:
    found = seen["cut_from_packs"]
    assert found["fits"] == [True, True]
    assert found["scales"] == [4, 2]


def test_what_it_forgot_to_declare_is_refused_by_name(seen: dict[str, Any]) -> None:
    for case in ("forgotten_in_loader", "forgotten_in_pages"):
        assert "a tensor 'berth_noise' that the family does not declare" in seen[case]["error"], case
    assert "a tensor 'berth_noise' that the family does not declare" in seen["forgotten_in_batch"]["record"]
    assert "found berth_noise, which no family declares" in seen["forgotten_in_batch"]["dictionary"]


if __name__ == "__main__":
    sys.stdout.write(json.dumps({case.__name__: case(sys.argv[1]) for case in CASES}))
