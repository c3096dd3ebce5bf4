"""Plain PyTorch, with FSDP2 (`fully_shard`) and checkpoints that any number of ranks can carry on from.

torchrun --nproc-per-node 2 examples/fsdp2.py [--meta META --processor PROCESSOR --model MODEL]
torchrun --nproc-per-node 4 examples/fsdp2.py … --resume fsdp2-out/step-5
"""

import json
from pathlib import Path

import common
import torch
from torch import distributed
from torch.distributed import checkpoint
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import FSDPModule, fully_shard

import lading


def backward(model: FSDPModule, batches: list[lading.Batch], device: torch.device) -> torch.Tensor:
    """The gradients of one step, in which every label weighs the same; returns its loss."""
    labels = torch.tensor(float(sum(batch.label_tokens for batch in batches)), device=device)
    distributed.all_reduce(labels)  # of all batches on all ranks
    losses = []
    for batch in batches:
        model.set_requires_gradient_sync(batch is batches[-1])
        loss = model(**batch.to(device), num_items_in_batch=labels).loss  # a sum, by the labels of the step
        (loss * distributed.get_world_size()).backward()  # FSDP takes the mean over ranks; the sum is wanted
        losses.append(loss.detach())
    total = torch.stack(losses).sum()
    distributed.all_reduce(total)
    return total


def save(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader: lading.Loader) -> None:
    weights, moments = get_state_dict(model, optimizer)
    checkpoint.save({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    # One rank's cursor would do. Those of all also know which samples failed to open, on whichever rank.
    (folder / f"loader-{distributed.get_rank()}.json").write_text(json.dumps(loader.state_dict()))


def load(folder: Path, model: torch.nn.Module, optimizer: torch.optim.Optimizer, loader: lading.Loader) -> int:
    weights, moments = get_state_dict(model, optimizer)
    checkpoint.load({"model": weights, "optimizer": moments}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)
    loader.load_state_dict([json.loads(file.read_text()) for file in sorted(folder.glob("loader-*.json"))])
    return int(folder.name.removeprefix("step-"))


def main() -> None:
    args = common.arguments(__doc__, out="fsdp2-out")
    device, rank = common.join_ranks(), distributed.get_rank()
    # placeholder_media: a rank with text alone runs its vision tower too; all must exchange the same gradients.
    loader = lading.Loader(common.corpus(args), args.processor, pack_size=args.pack_size, placeholder_media=True)
    model = common.model(args.model).to(device).train()
    for layer in model.get_decoder().layers:
        fully_shard(layer)
    # The vision tower stays in one piece with the rest: sharded block by block, it would be gathered once for pictures
    # and once more for clips, and a rank that has only one of them would be out of step with one that has both.
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    done = load(args.resume, model, optimizer, loader) if args.resume else 0

    for step, batches in enumerate(loader.steps(epochs=args.epochs, accumulate=args.accumulate), start=done + 1):
        loss = backward(model, batches, device)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
        if step % 5 == 0 or step == args.stop_after:
            save(args.out / f"step-{step}", model, optimizer, loader)
        if step == args.stop_after:
            break

    ledger = loader.merged_ledger()  # every rank must call it
    checksum = sum(value.full_tensor().double().sum().item() for value in model.parameters())
    checksums = [0.0] * distributed.get_world_size()
    distributed.all_gather_object(checksums, checksum)
    if rank == 0:
        print(ledger)
        print("parameters, summed up on each rank:", *checksums)  # the same on all, or something is wrong
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
