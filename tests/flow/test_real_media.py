"""Every conversation of the demo data, with its real pictures, clips and sounds, through a fitting family to a loss."""

from __future__ import annotations

import json

import pytest
import torch

from lading import toy
from lading.loader import Loader, load_processor
from lading.packing import build_pack, collate_packs
from lading.records import Encoded
from tests.support.alone import loss_alone, losses_packed
from tests.support.shared import real_processor, shared_data

CASES = [
    ("mllm_demo", "qwen2_5_vl"),
    ("mllm_video_demo", "qwen2_5_vl"),
    ("mllm_demo", "qwen3_vl"),
    ("mllm_video_demo", "qwen3_vl"),
    ("mllm_demo", "qwen3_omni"),
    ("mllm_video_demo", "qwen3_omni"),
    ("mllm_audio_demo", "qwen3_omni"),
    ("mllm_video_audio_demo", "qwen3_omni"),
    ("mllm_demo", "kimi_k25"),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "name"), [pytest.param(*case, marks=pytest.mark.xdist_group(f"real-media-{case[1]}")) for case in CASES]
)
def test_real_media_train_packed_as_alone(data: str, name: str) -> None:
    path = shared_data(f"mllm_demo/{data}.json")
    loader = Loader(path, load_processor(real_processor(name)), pack_size=16_384)
    batches = list(loader)
    loader.ledger.check()
    assert loader.ledger.total()["trained"] == len(json.loads(path.read_text()))
    samples = loader.samples
    model = toy.fitted(name, samples.facts.processor).eval()
    with torch.no_grad():
        assert all(torch.isfinite(model(**batch).loss) for batch in batches)
    encoded = [sample for sample in map(samples.encode, range(len(samples))) if isinstance(sample, Encoded)]
    fields = samples.facts.family.table
    pack = build_pack(encoded, fields=fields, three_way=samples.facts.three_way)
    together = losses_packed(model, collate_packs([pack], fields=fields, pad_token=samples.facts.pad_token))
    alone = [loss_alone(model, sample, samples.facts.processor) for sample in encoded]
    assert together == pytest.approx(alone, abs=1e-5)
