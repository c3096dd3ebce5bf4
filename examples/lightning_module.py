"""Lightning (PyTorch Lightning) on packs.

python examples/lightning_module.py [--meta META --processor PROCESSOR --model MODEL] [--eval [META]]
torchrun --nproc-per-node 2 examples/lightning_module.py … --resume lightning-out/step=8.ckpt
"""

import os
from typing import Any

import common
import lightning
import torch
from lightning.pytorch.callbacks import ModelCheckpoint

import lading


class EndlessLoader(lading.Loader):
    """Lightning counts its epochs by itself (`len`, `limit_train_batches`): here, another batch always follows."""

    def __iter__(self) -> Any:
        while True:
            yield from super().__iter__()


class Packs(lightning.LightningDataModule):
    def __init__(self, own: Any) -> None:
        super().__init__()
        self.own = own

    def setup(self, stage: str) -> None:  # not before: by now the ranks have been joined
        own, options = self.own, {"pack_size": self.own.pack_size, "placeholder_media": True}
        self.loader = EndlessLoader(common.corpus(own), own.processor, **options)
        self.held_out = own.eval and lading.Loader(common.held_out(own), own.processor, validation=True, **options)

    def train_dataloader(self) -> lading.Loader:
        return self.loader

    def val_dataloader(self) -> lading.Loader | list[Any]:
        return self.held_out or []

    def state_dict(self) -> dict[str, Any]:
        return self.loader.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.loader.load_state_dict(state_dict)


class Model(lightning.LightningModule):
    def __init__(self, folder: str | None) -> None:
        super().__init__()
        self.model = common.model(folder).train()
        self.register_buffer("sums", torch.zeros(2), persistent=False)  # of the step: its loss and its labels

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-3)

    def training_step(self, batch: lading.Batch, number: int) -> torch.Tensor:
        loss = self.model(**batch, num_items_in_batch=1).loss  # a sum
        self.sums += torch.stack([loss.detach(), (batch.tensor("shift_labels") != -100).sum()])
        return loss

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        loss, labels = self.trainer.strategy.reduce(self.sums, reduce_op="sum")  # of all batches on all ranks
        # Lightning has divided by the number of batches, and DDP by that of ranks; to be divided by is that of labels.
        for value in self.parameters():
            if value.grad is not None:
                value.grad.mul_(self.trainer.accumulate_grad_batches * self.trainer.world_size / labels)
        self.print(f"step {self.global_step + 1}: loss {loss / labels:.4f}", flush=True)
        self.sums.zero_()

    def validation_step(self, batch: lading.Batch, number: int) -> None:
        loss = self.model(**batch, num_items_in_batch=max(1, batch.label_tokens)).loss
        # A float: Lightning takes the mean of the numbers of ranks, and would cut it to a whole number.
        self.log("val_loss", loss, batch_size=float(batch.label_tokens), sync_dist=True)

    def on_validation_end(self) -> None:
        if not self.trainer.sanity_checking:
            self.print(f"step {self.global_step}: val_loss {self.trainer.callback_metrics['val_loss']:.6f}", flush=True)

    def on_train_end(self) -> None:
        self.print(self.trainer.datamodule.loader.merged_ledger())  # every rank must call it


def main() -> None:
    own = common.arguments(__doc__, out="lightning-out", evaluates=True)
    trainer = lightning.Trainer(
        devices=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),  # of torchrun
        max_epochs=own.epochs,
        max_steps=own.stop_after or -1,
        accumulate_grad_batches=own.accumulate,
        callbacks=[ModelCheckpoint(own.out, "{step}", save_top_k=-1, every_n_train_steps=8)],
        logger=False,
        enable_progress_bar=False,
    )
    trainer.fit(Model(own.model), Packs(own), ckpt_path=own.resume)


if __name__ == "__main__":
    main()
