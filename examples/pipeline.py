"""Plain PyTorch, with pipeline parallelism: two stages of a model, and microbatches that keep their pictures.

torchrun --nproc-per-node 2 examples/pipeline.py [--meta META --processor PROCESSOR --model MODEL]
torchrun --nproc-per-node 2 examples/pipeline.py … --resume pipeline-out/step-3
"""

from pathlib import Path
from typing import Any

import common
import torch
from torch import Tensor, distributed, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import cross_entropy

import lading

MICROBATCHES = 4


class First(nn.Module):
    """The vision tower, the embeddings and the first half of the layers."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model, text = model.model, model.model.language_model
        text.layers, text.norm = text.layers[: len(text.layers) // 2], nn.Identity()

    def forward(self, input_ids: Tensor, **inputs: Any) -> Tensor:
        return self.model(input_ids=input_ids, **inputs).last_hidden_state


class Last(nn.Module):
    """The other half of the layers, and the scores of the vocabulary."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.text, self.head = model.model.language_model, model.lm_head
        self.text.layers = self.text.layers[len(self.text.layers) // 2 :]

    def forward(self, hidden: Tensor, position_ids: Tensor, **_: Any) -> Tensor:
        return self.head(self.text(inputs_embeds=hidden, position_ids=position_ids, use_cache=False).last_hidden_state)


def main() -> None:
    args = common.arguments(__doc__, out="pipeline-out")
    device, rank = common.join_ranks(), distributed.get_rank()
    first, last = rank == 0, rank == 1
    mesh = init_device_mesh(device.type, (1, 2), mesh_dim_names=("dp", "pp"))  # both stages get the same batches
    sizes = {"pack_size": args.pack_size, "batch_size": 4, "microbatches": MICROBATCHES}
    loader = lading.Loader(common.corpus(args), args.processor, mesh=mesh, **sizes)
    part = (First if first else Last)(common.model(args.model)).to(device).train()
    optimizer = torch.optim.AdamW(part.parameters(), lr=1e-3)
    labels = torch.ones((), device=device)

    def loss_of(scores: Tensor, target: Tensor) -> Tensor:
        """A sum, by the labels of the whole batch: its microbatches do not have equally many."""
        return cross_entropy(scores.flatten(0, 1).float(), target.flatten(), reduction="sum") / labels

    schedule = Schedule1F1B(PipelineStage(part, rank, 2, device), MICROBATCHES, loss_fn=loss_of, scale_grads=False)
    done = load(args.resume, part, optimizer, loader) if args.resume else 0

    for step, (batch,) in enumerate(loader.steps(epochs=args.epochs), start=done + 1):
        labels.fill_(batch.label_tokens)
        losses: list[Tensor] = []
        schedule.step(**batch.to(device).step_inputs(first=first, last=last), losses=losses, return_outputs=False)
        optimizer.step()
        optimizer.zero_grad()
        if last:
            print(f"step {step}: loss {torch.stack(losses).sum():.4f}", flush=True)
        if step % 3 == 0:
            save(args.out / f"step-{step}", part, optimizer, loader)
    if last:
        print(loader.ledger)
    distributed.destroy_process_group()


def save(folder: Path, part: nn.Module, optimizer: torch.optim.Optimizer, loader: lading.Loader) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    state = {"part": part.state_dict(), "optimizer": optimizer.state_dict(), "loader": loader.state_dict()}
    torch.save(state, folder / f"stage-{distributed.get_rank()}.pt")


def load(folder: Path, part: nn.Module, optimizer: torch.optim.Optimizer, loader: lading.Loader) -> int:
    state = torch.load(folder / f"stage-{distributed.get_rank()}.pt")
    part.load_state_dict(state["part"])
    optimizer.load_state_dict(state["optimizer"])
    loader.load_state_dict(state["loader"])
    return int(folder.name.removeprefix("step-"))


if __name__ == "__main__":
    main()
