"""The Hugging Face Trainer on padded rows of like length. (Packs train faster, and lose nothing: see hf_trainer.py.)

python examples/hf_trainer_padded.py [--meta META --processor PROCESSOR --model MODEL]
torchrun --nproc-per-node 2 examples/hf_trainer_padded.py … --resume hf-padded-out/checkpoint-8
"""

from typing import Any

import common
import torch
from torch.utils.data import DataLoader
from transformers import Trainer, TrainerCallback, TrainingArguments

from lading.loader import load_processor
from lading.loader.epoch import merged_ledger
from lading.vlm.collate_fns import pad_collate_fn
from lading.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset
from lading.vlm.samplers import LengthGroupedSampler


class PaddedTrainer(Trainer):
    def __init__(self, *args: Any, sampler: LengthGroupedSampler, **options: Any) -> None:
        super().__init__(*args, **options)
        self.sampler = sampler
        # Qwen-VL's classes say that they cannot be told the number of labels of a step. Their losses can, and must be.
        self.model_accepts_loss_kwargs = True

    def get_train_dataloader(self) -> DataLoader[Any]:
        size = self.args.per_device_train_batch_size  # not prepared by Accelerate: each rank has its share already
        return DataLoader(self.train_dataset, size, sampler=self.sampler, collate_fn=self.data_collator)


class SetEpoch(TrainerCallback):
    def on_epoch_begin(
        self, args: TrainingArguments, state: Any, control: Any, train_dataloader: Any, **rest: Any
    ) -> None:
        train_dataloader.sampler.set_epoch(int(state.epoch))


def main() -> None:
    own = common.arguments(__doc__, out="hf-padded-out")
    args = TrainingArguments(  # before the data: they join the ranks that torchrun announces
        output_dir=str(own.out),
        num_train_epochs=own.epochs,
        max_steps=own.stop_after or -1,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=own.accumulate,
        learning_rate=1e-3,
        logging_steps=1,
        save_steps=8,
        ddp_find_unused_parameters=True,  # a row of text alone leaves the vision tower without gradients
        use_cpu=not torch.cuda.is_available(),
        report_to=[],
        disable_tqdm=True,
    )
    processor = load_processor(own.processor)
    examples = make_meta_dataset(common.corpus(own), shard_data=args.world_size > 1, lazy=True)
    samples = PreTokenizedDatasetWrapper(examples, processor, max_length=own.pack_size, ledger=examples.ledger())
    sampler = LengthGroupedSampler(samples, max_length=own.pack_size, batch_size=args.per_device_train_batch_size)

    def collate(rows: list[Any]) -> dict[str, torch.Tensor]:
        batch = pad_collate_fn(rows, processor)
        return {**batch, "shift_labels": batch["labels"]}  # shifted already: the model must not do it again

    data = {"train_dataset": samples, "data_collator": collate, "sampler": sampler}
    # From the checkpoint, if there is one: the Trainer may not find its weights (see docs/trainers/hf-trainer.md).
    trainer = PaddedTrainer(common.model(own.resume or own.model), args, **data, callbacks=[SetEpoch()])
    trainer.train(resume_from_checkpoint=own.resume and str(own.resume))
    if trainer.state.epoch >= 1:
        # All that the sampler gives out in an epoch was trained on, if nothing stood in for it.
        ledger = samples.account(sampler.sorted_indices)
        for entry in sampler.dropped:
            ledger.dropped(entry)
        ledger = merged_ledger(ledger)  # every rank must call it
        print(ledger if trainer.is_world_process_zero() else "", end="")
    trainer.accelerator.end_training()  # leaves the group of ranks; the Trainer does not


if __name__ == "__main__":
    main()
