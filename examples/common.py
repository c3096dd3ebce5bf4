"""What every example asks for: your corpus, your processor and your model, or small ones made on the spot."""

import argparse
import os
from pathlib import Path
from typing import Any

import torch

# Before a group is joined: imported later (by DDP, say), this module keeps the group in the defaults of its functions.
# destroy_process_group then leaves gloo's threads running, and one that still tidies up may abort the leaving process.
import torch.distributed.nn
from torch import distributed
from transformers import AutoModelForImageTextToText

import lading


def arguments(about: str | None, out: str, *, evaluates: bool = False) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--meta", type=Path, help="your corpus: a meta.json, .json or .jsonl; without, one is made")
    parser.add_argument("--processor", default="toy:qwen2_5_vl", help="a folder or a hub id")
    parser.add_argument("--model", help="a folder or a hub id; without, a small one is made")
    parser.add_argument("--pack-size", type=int, default=256, help="tokens in a pack")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=2, help="batches of each rank in a step")
    parser.add_argument("--stop-after", type=int, help="the last step to take, if not all of them")
    parser.add_argument("--out", type=Path, default=Path(out), help="where checkpoints go")
    parser.add_argument("--resume", type=Path, help="the checkpoint to carry on from: step-N in --out")
    if evaluates:
        parser.add_argument("--eval", nargs="?", const=True, help="your validation set; without a name, one is made")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def join_ranks() -> torch.device:
    """Joins the process group that torchrun announces, and returns the device of this rank."""
    if not torch.cuda.is_available():
        distributed.init_process_group("gloo")
        return torch.device("cpu")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    distributed.init_process_group("nccl", device_id=device)
    return device


def corpus(args: argparse.Namespace) -> Path:
    """Yours, or one that is made."""
    return _made(args.out / "corpus", samples=120) if args.meta is None else Path(args.meta)


def held_out(args: argparse.Namespace) -> Path:
    """The validation set: yours, or one that is made."""
    return _made(args.out / "held-out", samples=30, seed=1) if args.eval is True else Path(args.eval)


def _made(folder: Path, *, samples: int, seed: int = 0) -> Path:
    """A corpus that the first rank makes while the others wait."""
    ranks = distributed.is_initialized()
    if not ranks or distributed.get_rank() == 0:
        lading.toy.write_corpus(folder, samples=samples, seed=seed)
    if ranks:
        distributed.barrier()
    return folder / "meta.json"


def model(folder: str | Path | None) -> Any:
    return AutoModelForImageTextToText.from_pretrained(folder) if folder else lading.toy.model("qwen2_5_vl")
