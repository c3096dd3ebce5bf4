"""Collating one long pack."""

from __future__ import annotations

from typing import Any

from benchmarks import documents
from benchmarks.measure import MEGABYTE, median_seconds
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="collate a pack",
    what=(
        "Collate one pack of 32k tokens of 64 documents with a picture each, and weigh everything in the batch that "
        "keeps documents apart (masks, lengths, document ids; of ours, which has no mask, the positions that restart). "
        "In one thread, as in a worker. The reference makes a dense mask for SDPA, its default; for flash attention it "
        "makes none. Either way it also turns the pixels into bfloat16; ours hands on what is in the pack without a "
        "copy (scaling is in the row before)."
    ),
    figures=(
        Figure(name="seconds", what="time", unit="s", goal=Goal(times=500)),
        Figure(name="mask", what="mask", unit="MB", goal=Goal(at_most=2)),
    ),
    rivals=(
        Rival(name="NeMo Automodel, SDPA", package="nemo-automodel", call="theirs"),
        Rival(name="NeMo Automodel, flash attention", package="nemo-automodel", call="theirs_flash", judged=False),
    ),
    repeats=3,
    bound="so little work is left (nothing is copied) that whatever else the machine does decides its median.",
)
prepare = documents.prepare


def ours(job: Job) -> dict[str, float]:
    """With positions that restart, the default, which SDPA and flash attention both understand."""
    from lading.packing import build_pack, collate_packs

    facts, samples = documents.own_samples(job)
    fields = facts.family.table
    pack = build_pack(samples, fields=fields, three_way=facts.three_way)

    def collate() -> Any:
        return collate_packs([pack], fields=fields, pad_token=facts.pad_token)

    batch = collate()
    return {"seconds": median_seconds(collate, 50), "mask": _weight([batch["position_ids"]])}


def theirs(job: Job) -> dict[str, float]:
    """With a dense mask."""
    return _theirs(job, "sdpa")


def theirs_flash(job: Job) -> dict[str, float]:
    """With cumulative lengths or document ids."""
    return _theirs(job, "flash_attention_2")


def _theirs(job: Job, attention: str) -> dict[str, float]:
    from nemo_automodel.components.datasets.vlm.collate_fns import neat_packed_vlm_collater

    processor, samples = documents.their_samples(job)
    pack = documents.their_pack(processor, samples, three_way=True)()
    padding = processor.tokenizer.pad_token_id

    def collate() -> Any:
        return neat_packed_vlm_collater([pack], padding, attn_implementation=attention)

    batch = collate()
    apart = ("attention_mask", "_packed_seq_ids", "cu_seq_lens_q", "cu_seq_lens_k", "cu_seqlens")
    return {"seconds": median_seconds(collate, 3), "mask": _weight([batch.get(name) for name in apart])}


def _weight(values: list[Any]) -> float:
    return sum(value.numel() * value.element_size() for value in values if value is not None) / MEGABYTE
