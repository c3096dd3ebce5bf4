"""The Hugging Face Trainer on packs.

python examples/hf_trainer.py [--meta META --processor PROCESSOR --model MODEL] [--eval [META]]
torchrun --nproc-per-node 2 examples/hf_trainer.py … --resume hf-trainer-out/checkpoint-8
"""

import json
from pathlib import Path
from typing import Any

import common
import torch
from torch.utils.data import DataLoader, IterableDataset
from transformers import EvalPrediction, Trainer, TrainerCallback, TrainingArguments

import lading


class Packs(IterableDataset[lading.Batch | None]):
    """The loader as the Trainer wants it: what it has trained on already is there for it to skip, but is not read."""

    def __init__(self, loader: lading.Loader) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Any:
        if self.loader.resumes_at == len(self.loader):
            self.loader.set_epoch(self.loader.config.epoch + 1)
        yield from [None] * self.loader.resumes_at
        yield from self.loader


class PackTrainer(Trainer):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Some classes (Qwen-VL's) say that they cannot be told the number of labels of a step. Their losses can, and
        # must be: else a batch with few labels weighs as much as one with many.
        self.model_accepts_loss_kwargs = True

    def get_train_dataloader(self) -> DataLoader[lading.Batch | None]:
        return DataLoader(self.train_dataset, batch_size=None)  # batches as they come, each rank its own

    def get_eval_dataloader(self, eval_dataset: Any = None) -> DataLoader[lading.Batch | None]:
        return DataLoader(self.eval_dataset if eval_dataset is None else eval_dataset, batch_size=None)

    def _prepare_inputs(self, inputs: lading.Batch) -> dict[str, Any]:
        return dict(inputs.to(self.args.device))

    def prediction_step(self, model: Any, inputs: lading.Batch, *rest: Any, **options: Any) -> tuple[Any, ...]:
        with torch.no_grad(), self.compute_loss_context_manager():
            loss = model(**self._prepare_inputs(inputs), num_items_in_batch=1).loss  # a sum
        return None, loss.reshape(1), torch.tensor([inputs.label_tokens], device=loss.device)


def mean_over_labels(found: EvalPrediction) -> dict[str, float]:
    """`eval_loss`, of all batches of all ranks. The Trainer's own would be a mean of the batches' means."""
    return {"loss": float(found.predictions.sum(dtype="float64") / found.label_ids.sum())}


class SaveCursor(TrainerCallback):
    def on_save(self, args: TrainingArguments, state: Any, control: Any, train_dataloader: Any, **rest: Any) -> None:
        file = Path(args.output_dir, f"checkpoint-{state.global_step}", f"loader-{args.process_index}.json")
        file.write_text(json.dumps(train_dataloader.dataset.loader.state_dict()))


def main() -> None:
    own = common.arguments(__doc__, out="hf-trainer-out", evaluates=True)
    args = TrainingArguments(  # before the loader: they join the ranks that torchrun announces
        output_dir=str(own.out),
        num_train_epochs=own.epochs,
        max_steps=own.stop_after or -1,
        gradient_accumulation_steps=own.accumulate,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=8,
        eval_strategy="steps" if own.eval else "no",
        eval_steps=8,
        ddp_find_unused_parameters=False,  # there are none, thanks to placeholder_media
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        disable_tqdm=True,
    )
    options = {"pack_size": own.pack_size, "placeholder_media": True}
    loader = lading.Loader(common.corpus(own), own.processor, **options)
    held_out = own.eval and Packs(lading.Loader(common.held_out(own), own.processor, validation=True, **options))
    if own.resume:
        loader.load_state_dict([json.loads(file.read_text()) for file in sorted(own.resume.glob("loader-*.json"))])
    # From the checkpoint, if there is one: the Trainer may not find its weights (see docs/trainers/hf-trainer.md).
    model = common.model(own.resume or own.model)
    data = {"train_dataset": Packs(loader), "eval_dataset": held_out, "compute_metrics": mean_over_labels}
    trainer = PackTrainer(model, args, **data, callbacks=[SaveCursor()])
    trainer.train(resume_from_checkpoint=own.resume and str(own.resume))
    trainer.accelerator.print(loader.merged_ledger())  # every rank must call it
    trainer.accelerator.end_training()  # leaves the group of ranks; the Trainer does not


if __name__ == "__main__":
    main()
