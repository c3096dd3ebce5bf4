"""Every example runs by itself, trains, accounts for every sample, and carries on where it was interrupted."""

from pathlib import Path

import pytest

from tests.examples.running import EXAMPLES, run

CASES = {
    "hf_trainer": ("hf_trainer.py", [], ["--resume", "hf-trainer-out/checkpoint-8"], 8),
    "hf_trainer_padded": ("hf_trainer_padded.py", [], ["--resume", "hf-padded-out/checkpoint-16"], 16),
    "accelerate": ("accelerate_loop.py", [], ["--resume", "accelerate-out/step-5"], 5),
    "lightning": ("lightning_module.py", [], ["--resume", "lightning-out/step=8.ckpt"], 8),
    "nemo_packed": ("nemo/train.py", [], ["--checkpoint.restore_from", "nemo-out/step-4.pt"], 4),
    "nemo_padded": (
        "nemo/train.py",
        ["-c", EXAMPLES / "nemo" / "padded.yaml"],
        ["--checkpoint.restore_from", "nemo-out/step-8.pt"],
        8,
    ),
}
LEDGER = "all: 120 in = 120 trained + 0 replaced + 0 dropped"


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_it_trains_and_carries_on(name: str, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pytest.importorskip("torchdata")
    pytest.importorskip("lightning")
    script, words, resume, done = CASES[name]
    whole = run(script, *words, folder=tmp_path).check()
    assert LEDGER in whole.out
    assert float(whole.losses[-1]) < float(whole.losses[0]) - 0.5
    rest = run(script, *words, *resume, folder=tmp_path).check()
    assert rest.losses == whole.losses[done:], "to the last digit that is printed"
    assert len(rest.losses) > 2
    assert LEDGER in rest.out
