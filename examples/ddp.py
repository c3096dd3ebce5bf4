"""Plain PyTorch, with DistributedDataParallel.

torchrun --nproc-per-node 2 examples/ddp.py [--meta META --processor PROCESSOR --model MODEL]
torchrun --nproc-per-node 2 examples/ddp.py … --resume ddp-out/step-5
"""

from contextlib import nullcontext

import common
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

import lading


def backward(model: DistributedDataParallel, batches: list[lading.Batch], device: torch.device) -> torch.Tensor:
    """The gradients of one step, in which every label weighs the same; returns its loss."""
    labels = torch.tensor(float(sum(batch.label_tokens for batch in batches)), device=device)
    distributed.all_reduce(labels)  # of all batches on all ranks
    losses = []
    for batch in batches:
        with nullcontext() if batch is batches[-1] else model.no_sync():
            loss = model(**batch.to(device), num_items_in_batch=labels).loss  # a sum, by the labels of the step
            (loss * distributed.get_world_size()).backward()  # DDP takes the mean over ranks; the sum is wanted
        losses.append(loss.detach())
    total = torch.stack(losses).sum()
    distributed.all_reduce(total)
    return total


def main() -> None:
    args = common.arguments(__doc__, out="ddp-out")
    device, rank = common.join_ranks(), distributed.get_rank()
    # placeholder_media: a rank with text alone runs its vision tower too, so that no other waits for its gradients.
    loader = lading.Loader(common.corpus(args), args.processor, pack_size=args.pack_size, placeholder_media=True)
    model = DistributedDataParallel(common.model(args.model).to(device).train())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    parts = {"model": model.module, "optimizer": optimizer, "loader": loader}
    done = 0
    if args.resume:
        done = int(args.resume.name.removeprefix("step-"))
        for name, state in torch.load(args.resume, map_location=device).items():
            parts[name].load_state_dict(state)

    for step, batches in enumerate(loader.steps(epochs=args.epochs, accumulate=args.accumulate), start=done + 1):
        loss = backward(model, batches, device)
        optimizer.step()
        optimizer.zero_grad()
        if rank == 0:
            print(f"step {step}: loss {loss:.4f}", flush=True)
        if rank == 0 and (step % 5 == 0 or step == args.stop_after):
            torch.save({name: part.state_dict() for name, part in parts.items()}, args.out / f"step-{step}")
        if step == args.stop_after:
            break

    ledger = loader.merged_ledger()  # every rank must call it
    checksum = sum(value.double().sum().item() for value in model.parameters())
    checksums = [0.0] * distributed.get_world_size()
    distributed.all_gather_object(checksums, checksum)
    if rank == 0:
        print(ledger)
        print("parameters, summed up on each rank:", *checksums)  # the same on all, or something is wrong
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
