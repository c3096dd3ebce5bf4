"""The evaluation loops of the Hugging Face Trainer and of Lightning: means over labels; each sample counts once."""

import json
import re
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForImageTextToText

from lading import toy
from tests.examples.running import run
from tests.examples.validation import check_set, loss_of_samples_alone

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ranks", [0, 2])
def test_that_of_the_trainer_is_the_loss_of_the_samples_alone(ranks: int, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    words = ["--accumulate", 1, "--stop-after", 16, "--eval"]
    done = run("hf_trainer.py", *words, folder=tmp_path, ranks=ranks).check()
    assert len(done.losses) == 16
    out = tmp_path / "hf-trainer-out"
    check_set(out / "held-out" / "meta.json")
    told = json.loads((out / "checkpoint-16" / "trainer_state.json").read_text())["log_history"]
    losses = {entry["step"]: entry["eval_loss"] for entry in told if "eval_loss" in entry}
    assert list(losses) == [8, 16]
    for step, loss in losses.items():
        model = AutoModelForImageTextToText.from_pretrained(out / f"checkpoint-{step}").eval()
        assert loss == pytest.approx(loss_of_samples_alone(out / "held-out" / "meta.json", model), abs=1e-5)
    assert losses[16] < losses[8] - 0.1


@pytest.mark.parametrize("ranks", [0, 2])
def test_that_of_lightning_is_the_loss_of_the_samples_alone(ranks: int, tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    done = run("lightning_module.py", "--eval", "--epochs", 2 if ranks else 1, folder=tmp_path, ranks=ranks).check()
    steps, losses = zip(*re.findall(r"^step (\d+): val_loss ([\d.]+)$", done.out, re.MULTILINE), strict=True)
    assert len(done.losses) == int(steps[-1]) == 24, "the last checkpoint is that of the last validation"
    out = tmp_path / "lightning-out"
    meta = out / "held-out" / "meta.json"
    check_set(meta)
    saved = torch.load(out / "step=24.ckpt", weights_only=False)["state_dict"]
    model = toy.model("qwen2_5_vl").eval()
    model.load_state_dict({name.removeprefix("model."): value for name, value in saved.items()})
    assert float(losses[-1]) == pytest.approx(loss_of_samples_alone(meta, model), abs=1e-5)
