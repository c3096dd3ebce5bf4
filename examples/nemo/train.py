"""Trains what a YAML file in the words of NeMo Automodel describes, on one device, without NeMo.

python examples/nemo/train.py -c examples/nemo/packed.yaml [--dataset.path_or_dataset META --optimizer.lr 1e-5 …]
"""

from functools import partial
from itertools import islice
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import torch
from config import built, read
from torch.utils.data import DistributedSampler

import lading
from lading.vlm.datasets import PreTokenizedDatasetWrapper, RobustDatasetWrapper
from lading.vlm.neat_packing_vlm import neat_pack_dataset_vlm


def make_data(config: dict[str, Any], processor: Any) -> tuple[Any, Any, bool]:
    """The data set, its collate function, and whether it is to be shuffled: packs do that themselves."""
    examples = built(config["dataset"])
    collate = config["dataloader"].pop("collate_fn")
    collate = partial(resolve_name(collate.pop("_target_")), **collate)
    packing = config.get("packed_sequence", {})
    if not packing:
        return RobustDatasetWrapper(examples, ledger=examples.ledger()), partial(collate, processor=processor), True
    samples = PreTokenizedDatasetWrapper(examples, processor, max_length=packing.pop("max_length", None))
    padding = processor.tokenizer.pad_token_id
    packs = neat_pack_dataset_vlm(samples, padding_idx=padding, ledger=examples.ledger(), **packing)
    return packs, partial(collate, padding_idx=padding), False


def backward(model: torch.nn.Module, batches: list[dict[str, Any]]) -> float:
    """The gradients of one step, in which every label weighs the same; returns its loss."""
    labels = sum((batch["labels"] != -100).sum() for batch in batches)
    total = 0.0
    for batch in batches:
        inputs = {name: value for name, value in batch.items() if not name.startswith("n_")}
        # Labels are shifted already; a model that is told so does not do it again.
        loss = model(**inputs, shift_labels=inputs["labels"], num_items_in_batch=labels).loss
        loss.backward()
        total += loss.item()
    return total


def main() -> None:
    config = read(__doc__, default=Path(__file__).with_name("packed.yaml"))
    corpus, schedule, kept = Path(config["dataset"]["path_or_dataset"]), config["step_scheduler"], config["checkpoint"]
    Path(kept["checkpoint_dir"]).mkdir(parents=True, exist_ok=True)
    if not corpus.exists():
        lading.toy.write_corpus(corpus.parent)
    processor, model = built(config["processor"]), built(config["model"]).train()
    data, collate_fn, shuffle = make_data(config, processor)
    sampler = DistributedSampler(data, num_replicas=1, rank=0, shuffle=shuffle, seed=config["rng"]["seed"])
    size = schedule["local_batch_size"]
    loader = built(config["dataloader"], dataset=data, sampler=sampler, batch_size=size, collate_fn=collate_fn)
    optimizer = built(config["optimizer"], params=list(model.parameters()))
    parts = {"model": model, "optimizer": optimizer, "loader": loader}
    at = {"step": 0, "epoch": 0, "taken": 0}
    if kept.get("restore_from"):
        saved = torch.load(kept["restore_from"], weights_only=False)
        at = saved.pop("at")
        for name, state in saved.items():
            parts[name].load_state_dict(state)

    for epoch in range(at["epoch"], schedule["num_epochs"]):
        data.set_epoch(epoch)
        sampler.set_epoch(epoch)
        at = {**at, "epoch": epoch, "taken": at["taken"] if epoch == at["epoch"] else 0}
        batches = iter(loader)
        while group := list(islice(batches, schedule["global_batch_size"] // size)):
            loss = backward(model, group)
            optimizer.step()
            optimizer.zero_grad()
            at = {**at, "step": at["step"] + 1, "taken": at["taken"] + sum(len(one["labels"]) for one in group)}
            print(f"step {at['step']}: loss {loss:.4f}", flush=True)
            if at["step"] % schedule["ckpt_every_steps"] == 0:
                states = {name: part.state_dict() for name, part in parts.items()}
                torch.save({"at": at, **states}, Path(kept["checkpoint_dir"], f"step-{at['step']}.pt"))

    print(data.account(list(sampler)[: at["taken"]]))  # what the sampler gave out, less what was replaced


if __name__ == "__main__":
    main()
