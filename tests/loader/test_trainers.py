"""The loader in the hands of what people train with: torchdata, Accelerate, the Hugging Face Trainer."""

from pathlib import Path
from typing import Any

import pytest
import torch

from lading import Loader, toy
from lading.records import Batch

TOY = "toy:qwen2_5_vl"


def documents(batch: Batch) -> list[int]:
    return [document.key.index for row in batch.rows for document in row]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_data_loader_of_ones_own(toy_meta: Path, workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    whole = [documents(batch) for batch in Loader(toy_meta, TOY, pack_size=300)]
    first = stateful(**Loader(toy_meta, TOY, pack_size=300).parts(), num_workers=workers)
    batches = iter(first)
    seen = [documents(next(batches)) for _ in range(5)]
    second = stateful(**Loader(toy_meta, TOY, pack_size=300).parts(), num_workers=workers)
    second.load_state_dict(first.state_dict())
    seen += [documents(batch) for batch in second]
    assert seen == whole


@pytest.mark.slow
def test_accelerate_trains_saves_and_carries_on(toy_meta: Path, tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    whole = [documents(batch) for batch in Loader(toy_meta, TOY, pack_size=300)]

    def started() -> tuple[Any, Any, Any, Loader]:
        accelerator = accelerate.Accelerator(cpu=True)
        model = toy.model("qwen2_5_vl")
        loader = Loader(toy_meta, TOY, pack_size=300)
        model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
        accelerator.register_for_checkpointing(loader)
        return accelerator, model, optimizer, loader

    accelerator, model, optimizer, loader = started()
    seen = []
    for batch in loader:
        accelerator.backward(model(**batch).loss)
        optimizer.step()
        optimizer.zero_grad()
        seen.append(documents(batch))
        if len(seen) == 4:
            accelerator.save_state(str(tmp_path))
            break
    accelerator, model, optimizer, loader = started()
    accelerator.load_state(str(tmp_path))
    seen += [documents(batch) for batch in loader]
    assert seen == whole
    loader.ledger.check()


@pytest.mark.slow
def test_the_hugging_face_trainer_trains_on_packs(toy_meta: Path, tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    from transformers import Trainer, TrainingArguments

    loader = Loader(toy_meta, TOY, pack_size=300)

    class PackTrainer(Trainer):  # type: ignore[misc]  # transformers' types are not followed
        def get_train_dataloader(self) -> Loader:
            return loader

    arguments = TrainingArguments(
        output_dir=str(tmp_path), num_train_epochs=2, learning_rate=2e-3, report_to=[], use_cpu=True, logging_steps=1,
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = PackTrainer(model=toy.model("qwen2_5_vl"), args=arguments)
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert trainer.state.global_step == 2 * len(loader)
    assert losses[-1] < losses[0]
    assert loader.config.epoch == 1
    loader.ledger.check()
