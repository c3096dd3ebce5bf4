"""A loop with Accelerate, on one process or many.

python examples/accelerate_loop.py [--meta META --processor PROCESSOR --model MODEL]
accelerate launch --num_processes 2 examples/accelerate_loop.py … --resume accelerate-out/step-5
"""

from contextlib import nullcontext

import common
import torch
from accelerate import Accelerator

import lading


def backward(accelerator: Accelerator, model: torch.nn.Module, batches: list[lading.Batch]) -> torch.Tensor:
    """The gradients of one step, in which every label weighs the same; returns its loss."""
    mine = torch.tensor(float(sum(batch.label_tokens for batch in batches)), device=accelerator.device)
    labels = accelerator.reduce(mine, reduction="sum")  # of all batches on all processes
    losses = []
    for batch in batches:
        with nullcontext() if batch is batches[-1] else accelerator.no_sync(model):
            loss = model(**batch.to(accelerator.device), num_items_in_batch=labels).loss  # a sum, by the step's labels
            accelerator.backward(
                loss * accelerator.num_processes
            )  # the mean over processes is taken; the sum is wanted
        losses.append(loss.detach())
    return accelerator.reduce(torch.stack(losses).sum(), reduction="sum")


def main() -> None:
    args = common.arguments(__doc__, out="accelerate-out")
    # Not Accelerator(gradient_accumulation_steps=…): backward would divide by them, and labels already do.
    accelerator = Accelerator(cpu=not torch.cuda.is_available())
    # The loader is made after the Accelerator, which joins the processes, and is not prepared: it knows its rank.
    loader = lading.Loader(common.corpus(args), args.processor, pack_size=args.pack_size, placeholder_media=True)
    model = common.model(args.model).train()
    model, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-3))
    accelerator.register_for_checkpointing(loader)
    done = 0
    if args.resume:
        accelerator.load_state(str(args.resume))
        done = int(args.resume.name.removeprefix("step-"))

    for step, batches in enumerate(loader.steps(epochs=args.epochs, accumulate=args.accumulate), start=done + 1):
        loss = backward(accelerator, model, batches)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.print(f"step {step}: loss {loss:.4f}", flush=True)
        if step % 5 == 0 or step == args.stop_after:
            accelerator.save_state(str(args.out / f"step-{step}"))
        if step == args.stop_after:
            break

    accelerator.print(loader.merged_ledger())
    accelerator.end_training()


if __name__ == "__main__":
    main()
