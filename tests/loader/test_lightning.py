"""The loader in Lightning's hands: interrupted anywhere, it goes on with the very batches that would have come."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from lading import Loader, toy
from lading.records import Batch
from tests.examples.running import EXAMPLES

lightning = pytest.importorskip("lightning")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::UserWarning:lightning.*"),
    pytest.mark.filterwarnings("ignore::FutureWarning:lightning.*"),
]
EPOCHS = 2


def documents(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


class Recorder(lightning.LightningModule):  # type: ignore[misc, name-defined]  # optional
    """The least that Lightning trains: it remembers what it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.seen: list[list[int]] = []
        self.validated: list[list[int]] = []

    def training_step(self, batch: Batch, number: int) -> torch.Tensor:
        self.seen.append(documents(batch))
        return self.weight.sum()

    def validation_step(self, batch: Batch, number: int) -> None:
        self.validated.append(documents(batch))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=20)


@pytest.fixture
def made(meta: Path, monkeypatch: pytest.MonkeyPatch) -> partial[Any]:
    """The data of the example, over a small corpus."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import lightning_module

    class Data(lightning_module.Packs):  # type: ignore[misc]  # an example is not typed
        def __init__(self, validates: bool = False) -> None:
            lightning.LightningDataModule.__init__(self)
            self.validates = validates

        def setup(self, stage: str) -> None:
            self.loader = lightning_module.EndlessLoader(meta, "toy:qwen2_5_vl", pack_size=300)
            options = {"pack_size": 300, "validation": True}
            self.held_out = Loader(meta, "toy:qwen2_5_vl", **options) if self.validates else None

    return partial(fit, Data)


def fit(
    data: Any,
    folder: Path,
    *,
    validates: bool = False,
    at_epoch_end: bool | None = None,
    resume: Path | None = None,
    **options: Any,
) -> Recorder:
    """Train, and keep a checkpoint of every step; with `at_epoch_end`, of every epoch's end or of its validation."""
    when = {"every_n_train_steps": 1} if at_epoch_end is None else {"save_on_train_epoch_end": at_epoch_end}
    keep = lightning.pytorch.callbacks.ModelCheckpoint(folder, "{epoch}-{step}", save_top_k=-1, **when)
    model = Recorder()
    trainer = lightning.Trainer(
        **{"max_epochs": EPOCHS, **options}, accelerator="cpu", callbacks=[keep], logger=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=folder,
    )  # fmt: skip
    trainer.fit(model, data(validates), ckpt_path=resume)
    return model


def steps_of(checkpoint: Path) -> int:
    return int(checkpoint.stem.split("step=")[1])


@pytest.mark.parametrize("validates", [False, True])
def test_it_carries_on_from_every_step(made: partial[Any], tmp_path: Path, validates: bool) -> None:
    whole = made(tmp_path, validates=validates).seen
    batches = len(whole) // EPOCHS
    for half in (whole[:batches], whole[batches:]):
        assert Counter(number for pack in half for number in pack) == dict.fromkeys(range(20), 1)
    found = sorted(tmp_path.glob("*.ckpt"), key=steps_of)
    assert [steps_of(checkpoint) for checkpoint in found] == list(range(1, len(whole) + 1))
    for checkpoint in found:
        rest = made(tmp_path / "rest", validates=validates, resume=checkpoint)
        assert rest.seen == whole[steps_of(checkpoint) :], checkpoint


@pytest.mark.parametrize("where", [True, False])
def test_it_carries_on_from_the_ends_of_epochs(made: partial[Any], tmp_path: Path, where: bool) -> None:
    keeping = {"at_epoch_end": where, "validates": True, "max_epochs": 3}
    whole = made(tmp_path, **keeping).seen
    found = sorted(tmp_path.glob("*.ckpt"), key=steps_of)
    assert len(found) == 3
    for checkpoint in found:
        rest = made(tmp_path / "rest", **keeping, resume=checkpoint)
        assert rest.seen == whole[steps_of(checkpoint) :], checkpoint


def test_its_epochs_may_be_shorter_than_those_of_the_data(made: partial[Any], tmp_path: Path) -> None:
    short = made(tmp_path, validates=True, limit_train_batches=4, max_epochs=3)
    whole = made(tmp_path / "whole").seen
    assert len(whole) == 12
    assert short.seen == whole, "nothing is left out or doubled"
    checks, looked_at = 3, 2
    assert short.validated == short.validated[:looked_at] + checks * short.validated[looked_at:][: len(whole) // EPOCHS]
    for checkpoint in tmp_path.glob("*.ckpt"):
        rest = made(tmp_path / "rest", limit_train_batches=4, max_epochs=3, resume=checkpoint)
        assert rest.seen == whole[steps_of(checkpoint) :], checkpoint
