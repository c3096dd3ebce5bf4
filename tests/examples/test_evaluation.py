"""The evaluation loop of the Hugging Face Trainer: a mean over labels in which every sample counts once."""

import json
from pathlib import Path

import pytest
from transformers import AutoModelForImageTextToText

from tests.examples.running import run
from tests.examples.validation import check_set, loss_of_samples_alone

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("ranks", [0, 2])
def test_it_is_the_loss_of_the_samples_alone(ranks: int, tmp_path: Path) -> None:
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
