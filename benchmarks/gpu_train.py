"""Train a Qwen2.5-VL of random weights on one GPU, fed five ways, and say how fast, how idle, how used, how equal.

    PYTHONPATH=src python3 -m benchmarks.gpu_train --out gpu_train.json
    PYTHONPATH=src python3 -m benchmarks.gpu_train --shape tiny          # a small one, on the CPU

    padded          8 documents in random order, padded to the longest    language model: sdpa, a mask of ones and zeros
    grouped         8 documents of like length, padded                    the same
    packed-mask     packs, documents apart by positions                   sdpa, a dense mask made on the device
    packed-varlen   packs, documents apart by their boundaries               torch's variable-length kernel
    packed-trained  the same, the vocabulary scored only where a label is the same

In every mode the vision tower attends by windows in one call, its feed-forwards are aligned, and its activations are
computed again on the way back. Those of the language model are kept where they fit into memory, which is tried first;
a mode that does not fit computes them again as well, and with `--again` every mode does. Figures are of real tokens:
padding counts for nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

# Batches of many sizes leave gaps in a memory of fixed pieces; read when torch is imported.
os.environ.setdefault("PYTORCH_ALLOC_CONF", "expandable_segments:True")

import numpy as np
import torch

from benchmarks.gpu.agreement import kernel_difference, loss_difference
from benchmarks.gpu.corpus import write_corpus
from benchmarks.gpu.feeds import MODES, Source, open_source
from benchmarks.gpu.measure import compute_language_again, figures, supply, train
from benchmarks.gpu.shapes import SHAPES, make_model, make_processor
from lading.attention import LANGUAGE, align_feed_forward


def main() -> None:
    """Run what was asked for, print it, and write it down."""
    asked = _arguments()
    device = "cuda" if torch.cuda.is_available() and asked.shape != "tiny" else "cpu"
    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    shape, processor = SHAPES[asked.shape], make_processor()
    began = time.perf_counter()

    def say(text: str) -> None:
        print(f"[{time.perf_counter() - began:6.1f} s] {text}", flush=True)

    folder = Path(asked.corpus or tempfile.mkdtemp())
    corpus = write_corpus(folder, documents=asked.corpus_documents, tile_tokens=shape.tile_tokens)
    source = open_source(corpus, processor, pack_size=asked.pack_size, documents=asked.documents, workers=asked.workers)
    say(f"corpus: {_described(source)}")
    model = make_model(shape, processor.tokenizer, device, dtype).train()
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    aligned = align_feed_forward(model)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    say(f"model: {parameters / 1e9:.2f} billion parameters, {dtype}, on {device}; torch {torch.__version__}")
    say(f"{aligned} feed-forwards aligned")
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if device == "cuda" else device,
        "torch": torch.__version__,
        "options": {name: own for name, own in vars(asked).items() if name not in ("out", "corpus")},
        "corpus": _described(source),
        "parameters": parameters,
    }

    found["kernel"] = kernel_difference(device, dtype)
    say("kernel, largest difference from float32: " + _listed(found["kernel"]))
    found["losses"] = loss_difference(model, source, documents=asked.documents_compared)
    say("loss of each document, difference from padded: " + _listed(found["losses"]))

    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=device == "cuda")
    found["modes"] = {}
    for name in asked.modes:
        found["modes"][name] = _run(model, optimizer, source, name, asked)
        say(_line(MODES[name].title, found["modes"][name]))
        _write(asked.out, found)
    if asked.supply:
        found["supply_tokens_per_second"] = supply(source, MODES["packed-varlen"], count=asked.supply)
        say(f"workers alone: {found['supply_tokens_per_second']:,.0f} real tokens/s with {asked.workers} workers")
    say(_ratio(found["modes"]))
    _write(asked.out, found)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", choices=tuple(SHAPES), default="3b")
    parser.add_argument("--modes", nargs="+", choices=tuple(MODES), default=list(MODES))
    parser.add_argument("--steps", type=int, default=12, help="timed steps of each mode")
    parser.add_argument("--warmup", type=int, default=3, help="steps before them")
    parser.add_argument("--pack-size", type=int, default=8192)
    parser.add_argument("--documents", type=int, default=0, help="in a padded batch; 0: as many as a pack holds")
    parser.add_argument("--workers", type=int, default=min(12, max(1, (os.cpu_count() or 2) - 2)))
    parser.add_argument("--corpus-documents", type=int, default=480)
    parser.add_argument("--documents-compared", type=int, default=8, help="whose losses are compared")
    parser.add_argument("--corpus", default="", help="folder to make the corpus in, once")
    parser.add_argument("--supply", type=int, default=40, help="batches taken from the workers alone; 0: none")
    parser.add_argument("--again", action="store_true", help="compute the language model again where it fits, too")
    parser.add_argument("--padded-attention", choices=("sdpa", "varlen"), default="sdpa")
    parser.add_argument("--out", default="", help="JSON file")
    return parser.parse_args()


def _run(model: Any, optimizer: Any, source: Source, name: str, asked: argparse.Namespace) -> dict[str, Any]:
    mode = MODES[name]
    if mode.rows != "packs" and asked.padded_attention == "varlen":
        mode = replace(mode, language=LANGUAGE)
    failed = ""
    for again in (True,) if asked.again else (False, True):
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        compute_language_again(model, again)
        try:
            steps = train(model, optimizer, source, mode, SHAPES[asked.shape], warmup=asked.warmup, steps=asked.steps)
        except torch.OutOfMemoryError as error:
            optimizer.zero_grad(set_to_none=True)
            failed = str(error).splitlines()[0]
            continue
        memory = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
        return {**figures(steps), "peak_memory": memory, "language_computed_again": again}
    return {"failed": failed}


def _described(source: Source) -> str:
    quarters = ", ".join(f"{length:.0f}" for length in np.quantile(source.lengths, (0, 0.25, 0.5, 0.75, 1)))
    return (
        f"{len(source.lengths)} documents, {source.lengths.mean():.0f} tokens on average "
        f"(least, quarters, most: {quarters}); "
        f"packs of {source.loader.config.pack_size}, padded batches of {source.documents}"
    )


def _listed(numbers: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.2g}" for name, value in numbers.items())


def _line(title: str, result: dict[str, Any]) -> str:
    if "failed" in result:
        return f"{title:26} failed: {result['failed']}"
    return (
        f"{title:26} {result['real_tokens_per_second']:8,.0f} real tokens/s   "
        f"idle {result['idle_share']:5.1%}   MFU {result['model_flop_utilisation']:5.1%}   "
        f"padding {result['padding_share']:4.0%}   {result['seconds_per_step']:.2f} s/step   "
        f"{result['peak_memory'] / 2**30:.0f} GiB"
        + ("   (language model computed again on the way back)" if result["language_computed_again"] else "")
    )


def _ratio(modes: dict[str, Any]) -> str:
    speeds = {name: result["real_tokens_per_second"] for name, result in modes.items() if "failed" not in result}
    if not {"padded", "packed-varlen"} <= set(speeds):
        return "padded and packed-varlen were not both measured"
    return f"packs with varlen attention train {speeds['packed-varlen'] / speeds['padded']:.2f} times as fast as padded"


def _write(path: str, found: dict[str, Any]) -> None:
    if path:
        Path(path).write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
