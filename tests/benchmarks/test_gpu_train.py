"""The training benchmark runs whole, small, on the CPU; and its count of work is torch's own count."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.gpu.corpus import write_corpus
from benchmarks.gpu.flops import batch_flops, language_flops, window_sizes
from benchmarks.gpu.shapes import SHAPES, make_model, make_processor
from lading import Loader
from tests.support.shared import ROOT


def test_it_runs_whole_and_all_ways_agree(tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    options = {
        "shape": "tiny",
        "steps": 2,
        "warmup": 1,
        "pack-size": 512,
        "workers": 1,
        "corpus-documents": 24,
        "supply": 2,
    }
    command = [sys.executable, "-m", "benchmarks.gpu_train", f"--out={out}", f"--corpus={tmp_path / 'corpus'}"]
    command += [f"--{name}={value}" for name, value in options.items()]
    paths = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text(encoding="utf-8"))
    assert set(found["modes"]) == {"padded", "grouped", "packed-mask", "packed-varlen", "packed-trained"}
    for mode in found["modes"].values():
        assert mode["real_tokens_per_second"] > 0
        assert 0 <= mode["idle_share"] < 1
        assert len(mode["steps"]) == 2
    assert found["modes"]["packed-varlen"]["padding_share"] < found["modes"]["padded"]["padding_share"]
    losses = found["losses"]
    assert losses["packed, mask, largest"] < 1e-5
    assert losses["packed, varlen, largest"] < 1e-5
    assert losses["planted fault, largest"] > 1e-3
    assert max(found["kernel"].values()) < 1e-3
    assert "times as fast as padded" in done.stdout


def test_work_is_counted_as_torch_counts_it(tmp_path: Path) -> None:
    """torch counts what is computed, so also what a mask then hides: every look at what comes later."""
    shape, processor = SHAPES["tiny"], make_processor()
    corpus = write_corpus(tmp_path, documents=1, tile_tokens=shape.tile_tokens)
    model = make_model(shape, processor.tokenizer, "cpu", torch.float32)
    model.set_attn_implementation("eager")  # plain products of matrices: counted by every torch
    batch = next(iter(Loader(corpus, processor, pack_size=512, attention="varlen")))
    with FlopCounterMode(display=False) as forward:
        model(**batch)
    with FlopCounterMode(display=False) as both:
        model(**batch).loss.backward()
    tokens = batch.rows[0][0].tokens
    hidden = 2 * shape.layers * tokens * (tokens - 1) * shape.heads * shape.head_size
    assert batch_flops(batch, shape) == pytest.approx(3 * (forward.get_total_flops() - hidden), rel=1e-3)
    assert batch_flops(batch, shape) == pytest.approx(both.get_total_flops(), rel=0.05)


def test_windows_cover_a_picture() -> None:
    sizes = list(window_sizes((1, 20, 12), SHAPES["3b"]))
    assert sizes == [64, 32, 64, 32, 32, 16]
    assert sum(sizes) == 20 * 12


def test_the_large_shape_is_of_three_billion() -> None:
    shape = SHAPES["3b"]
    weights = language_flops(1, shape) / 2
    assert weights == pytest.approx(3.086e9, rel=0.01)
