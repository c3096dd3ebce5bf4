"""Two ranks that are as unlike as can be: they do not wait for each other, and train what one process would."""

from __future__ import annotations

import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save

from lading import Loader, toy
from lading.media import placeholder
from lading.records import Batch
from tests.examples.running import EXAMPLES, Run, run

pytestmark = pytest.mark.slow
SIZE = 200
OUT = {
    "ddp.py": "ddp-out",
    "fsdp2.py": "fsdp2-out",
    "accelerate_loop.py": "accelerate-out",
    "lightning_module.py": "lightning-out",
}
LEDGER = re.compile(r"^all: (\d+) in = \1 trained \+ 0 replaced \+ 0 dropped$", re.MULTILINE)


@cache
def steps(meta: Path) -> list[tuple[Batch, ...]]:
    """The batches of both ranks, step by step, made in this process."""
    loaders = [
        Loader(meta, "toy:qwen2_5_vl", pack_size=SIZE, placeholder_media=True, rank=rank, world_size=2)
        for rank in range(2)
    ]
    return list(zip(*loaders, strict=True))


def is_text(batch: Batch) -> bool:
    return any(document.key.source == placeholder.SOURCE for row in batch.rows for document in row)


def both(script: str | Path, meta: Path, folder: Path, *words: object, size: int = SIZE, limit: float = 240) -> Run:
    return run(script, "--meta", meta, "--pack-size", size, *words, folder=folder, ranks=2, limit=limit)


def test_the_corpus_is_uneven(uneven: Path) -> None:
    texts = [[is_text(batch) for batch in step] for step in steps(uneven)]
    assert [True, False] in texts or [False, True] in texts, "text alone on one rank and pictures on the other"
    calls = [{("pixel_values" in batch) + ("pixel_values_videos" in batch) for batch in step} for step in steps(uneven)]
    assert {1, 2} in calls, "pictures and clips on one rank, which runs the vision tower twice, and not on the other"
    counts = [[batch.label_tokens for batch in step] for step in steps(uneven)[:2]]
    assert len({count for step in counts for count in step}) == 4, "and labels in other numbers"


@pytest.mark.parametrize("script", ["ddp.py", "fsdp2.py"])
def test_they_do_not_wait_for_each_other_and_carry_on(script: str, uneven: Path, tmp_path: Path) -> None:
    words = ["--accumulate", 1, "--epochs", 1]
    whole = both(script, uneven, tmp_path, *words).check()
    assert len(whole.losses) == len(steps(uneven))
    assert float(whole.losses[-1]) < float(whole.losses[0])
    assert LEDGER.search(whole.out)
    first, second = whole.checksums
    assert first == second
    rest = both(script, uneven, tmp_path, *words, "--resume", f"{OUT[script]}/step-5").check()
    assert rest.losses == whole.losses[5:]
    assert rest.checksums == whole.checksums
    if script == "fsdp2.py":
        words = ["--meta", uneven, "--pack-size", SIZE, "--epochs", 1, "--resume", "fsdp2-out/step-5"]
        alone = run(script, *words, folder=tmp_path, ranks=1).check()
        assert LEDGER.search(alone.out), "one rank carries on for two"


@pytest.mark.parametrize(
    "script", ["accelerate_loop.py", "lightning_module.py", "hf_trainer.py", "hf_trainer_padded.py"]
)
def test_nor_do_those_of_others(script: str, uneven: Path, tmp_path: Path) -> None:
    done = both(script, uneven, tmp_path, "--accumulate", 1, "--epochs", 1).check()
    assert float(done.losses[-1]) < float(done.losses[0])
    assert LEDGER.search(done.out)


@pytest.mark.parametrize("script", ["ddp.py", "fsdp2.py"])
def test_without_a_placeholder_they_fail(script: str, uneven: Path, tmp_path: Path) -> None:
    # As large as packs are beside a placeholder, so that the packs are the same.
    room = Loader(uneven, "toy:qwen2_5_vl", pack_size=SIZE, placeholder_media=True).plan.pack_size
    copy = changed(script, tmp_path, ", placeholder_media=True", "")
    done = both(copy, uneven, tmp_path, "--accumulate", 1, size=room, limit=90)
    assert done.code != 0
    assert done.code is None or re.search("collective mismatch|Connection|finished reduction", done.errors)


def test_a_vision_tower_that_is_sharded_block_by_block_fails(uneven: Path, tmp_path: Path) -> None:
    layers = "model.get_decoder().layers"
    script = changed("fsdp2.py", tmp_path, layers, f"[*{layers}, *model.model.visual.blocks]")
    done = both(script, uneven, tmp_path, "--accumulate", 1, limit=90)
    assert done.code != 0
    assert len(done.losses) == 2, "up to the step in which one rank has a picture and a clip"


def changed(script: str, folder: Path, old: str, new: str) -> Path:
    """A copy of an example with one thing changed."""
    shutil.copy(EXAMPLES / "common.py", folder)
    text = (EXAMPLES / script).read_text(encoding="utf-8")
    assert text.count(old) == 1
    path = folder / script
    path.write_text(
        "\n".join(line if line.lstrip().startswith("#") else line.replace(old, new) for line in text.splitlines())
    )
    return path


LEAVING = """
import atexit, pathlib, runpy, sys

def count():
    names = [file.read_text() for file in pathlib.Path("/proc/self/task").glob("*/comm")]
    sys.stdout.write(f"threads of gloo: {sum('gloo' in name for name in names)};")  # at once, beside the other rank

atexit.register(count)
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).parent))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are named in /proc on Linux alone")
@pytest.mark.parametrize("script", ["ddp.py", "accelerate_loop.py", "hf_trainer.py"])
def test_no_thread_of_gloo_is_left_that_could_abort_them(script: str, uneven: Path, tmp_path: Path) -> None:
    watched = tmp_path / "leaving.py"
    watched.write_text(LEAVING)
    words = [watched, EXAMPLES / script, "--meta", uneven, "--pack-size", SIZE, "--accumulate", 1, "--stop-after", 1]
    done = run(*words, folder=tmp_path, ranks=2).check()
    assert re.findall(r"threads of gloo: (\d+);", done.out) == ["0", "0"]


@cache
def reference(meta: Path) -> tuple[float, dict[str, torch.Tensor]]:
    """Loss and gradients of the first step, of two batches on each rank, in one process: the mean over its labels."""
    batches = [batch for step in steps(meta)[:2] for batch in step]
    labels = sum(batch.label_tokens for batch in batches)
    model = toy.model("qwen2_5_vl").train()
    total = 0.0
    for batch in batches:
        # From the mean over the batch, so that nothing is shared with what the examples rely on.
        loss = model(**batch).loss * (batch.label_tokens / labels)
        loss.backward()
        total += loss.item()
    return total, {name: value.grad for name, value in model.named_parameters()}


def moments(script: str, out: Path, folder: Path) -> dict[str, torch.Tensor]:
    """The first moments of Adam after one step, by parameter: a tenth of the gradients."""
    names = [name for name, _ in toy.model("qwen2_5_vl").named_parameters()]
    if script == "fsdp2.py":
        dcp_to_torch_save(out / "step-1", folder / "whole.pt")
        state: dict[str, Any] = torch.load(folder / "whole.pt", weights_only=False)["optimizer"]["state"]
        return {name: state[name]["exp_avg"] for name in names}
    if script == "ddp.py":
        saved = torch.load(out / "step-1", weights_only=False)["optimizer"]
    elif script == "lightning_module.py":
        (saved,) = torch.load(out / "step=1.ckpt", weights_only=False)["optimizer_states"]
    else:
        saved = torch.load(out / "step-1" / "optimizer.bin", weights_only=False)
    return {name: saved["state"][number]["exp_avg"] for number, name in enumerate(names)}


@pytest.mark.parametrize("script", ["ddp.py", "fsdp2.py", "accelerate_loop.py", "lightning_module.py"])
def test_a_step_of_two_ranks_is_that_of_one_process(script: str, uneven: Path, tmp_path: Path) -> None:
    early = changed(script, tmp_path, "train_steps=8", "train_steps=1") if script == "lightning_module.py" else script
    done = both(early, uneven, tmp_path, "--accumulate", 2, "--stop-after", 1).check()
    loss, gradients = reference(uneven)
    assert float(done.losses[0]) == pytest.approx(loss, abs=1e-4)
    found = moments(script, tmp_path / OUT[script], tmp_path)
    assert any(value.abs().max() > 1e-2 for value in gradients.values())
    for name, gradient in gradients.items():
        assert (found[name] * 10 - gradient).abs().max() < 1e-5, name


def test_a_step_of_the_trainer_is_that_of_one_process(uneven: Path, tmp_path: Path) -> None:
    done = both("hf_trainer.py", uneven, tmp_path, "--accumulate", 2, "--stop-after", 1).check()
    loss, gradients = reference(uneven)
    assert float(done.losses[0]) == pytest.approx(loss, abs=1e-3)
    norm = torch.stack([value.norm() for value in gradients.values()]).norm().item()
    (printed,) = re.findall(r"'grad_norm': '([\d.]+)'", done.out)
    assert float(printed) == pytest.approx(norm, abs=1e-3)


def test_two_stages_train_as_one_model_and_carry_on(uneven: Path, tmp_path: Path) -> None:
    words = ["--epochs", 4]
    whole = both("pipeline.py", uneven, tmp_path, *words, size=256).check()
    assert LEDGER.search(whole.out)
    batch = next(iter(Loader(uneven, "toy:qwen2_5_vl", pack_size=256, batch_size=4, microbatches=4)))
    with torch.no_grad():
        first = toy.model("qwen2_5_vl")(**batch).loss
    assert float(whole.losses[0]) == pytest.approx(float(first), abs=2e-4)
    resumed = both("pipeline.py", uneven, tmp_path, *words, "--resume", "pipeline-out/step-3", size=256).check()
    assert len(resumed.losses) > 2
    assert resumed.losses == whole.losses[3:]
