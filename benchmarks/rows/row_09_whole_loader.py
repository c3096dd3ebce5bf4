"""The whole loader over pictures."""

from __future__ import annotations

import json
from typing import Any

from benchmarks import pictures
from benchmarks import theirs as reference
from benchmarks.inputs import processor_folder
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="whole loader",
    what=(
        "An epoch over 400 conversations about JPEGs of about 1024×768, two workers, packs of 8192: tokens of "
        "documents handed over in a second, padding not counted, from the first request to the last batch; and the "
        "same with opening, counting and planning included. Ours at its defaults: its workers hand over bytes, and "
        "every tensor is read on the CPU, where pixels are scaled to floats as they are read; and again without "
        "reading, as before a GPU, which scales them itself. The reference's workers hand over floats. It is handed "
        "exact counts (text, template and media), which it cannot work out for itself: with its own it would lose "
        "samples."
    ),
    figures=(
        Figure(name="rate", what="epoch alone, all read", unit="tokens/s", better="more", goal=Goal(times=3)),
        Figure(name="rate_workers", what="epoch alone, workers", unit="tokens/s", better="more", goal=Goal(times=5)),
        Figure(name="rate_from_start", what="from opening on, all read", unit="tokens/s", better="more"),
        Figure(name="documents", what="documents handed over", compared=False),
    ),
    rivals=(
        Rival(name="NeMo Automodel, flash attention", package="nemo-automodel", call="theirs"),
        Rival(name="NeMo Automodel, SDPA", package="nemo-automodel", call="theirs_sdpa"),
    ),
    bound="decoding and resizing; see the row of one picture. On two cores, scaling takes a part of their time.",
)


def prepare(job: Job) -> None:
    """The pictures; then every row again with its exact counts."""
    from lading.encode import Encoder
    from lading.lengths import count_lengths
    from lading.samples import Samples
    from lading.sources import open_corpus

    plain = pictures.write_corpus(job)
    encoder = Encoder.of(str(processor_folder(job)))
    table = count_lengths(Samples(corpus=open_corpus(plain), encoder=encoder))
    entry = json.loads(plain.read_text(encoding="utf-8"))["talks"]
    counted = job.inputs / "counted"
    counted.mkdir()
    lines = (plain.parent / "talks.jsonl").read_text(encoding="utf-8").splitlines()
    with (counted / "talks.jsonl").open("w", encoding="utf-8") as file:
        for line, tokens in zip(lines, table.tokens.tolist(), strict=True):
            # Everything under one name, and no size for the picture: that would be counted on top.
            row = {**json.loads(line), "_text_tokens": tokens, "mm_inputs_meta": {"images_meta": []}}
            file.write(json.dumps(row) + "\n")
    (counted / "meta.json").write_text(json.dumps({"talks": entry}), encoding="utf-8")


def ours(job: Job) -> dict[str, float]:
    """The loader at its defaults."""
    return pictures.our_rates(job)


def theirs(job: Job) -> dict[str, float]:
    """Without a dense mask."""
    return _theirs(job, "flash_attention_2")


def theirs_sdpa(job: Job) -> dict[str, float]:
    """With a dense mask, its default."""
    return _theirs(job, "sdpa")


def _theirs(job: Job, attention: str) -> dict[str, float]:
    options: dict[str, Any] = {"pack_size": pictures.PACK_SIZE, "workers": pictures.WORKERS}
    options |= {"attention": attention, "three_way": True}
    make = reference.loader_maker(job.inputs / "counted" / "meta.json", processor_folder(job), **options)
    rates = pictures.rates(lambda: (_lengths(batch) for batch in make()))
    return {**rates, "rate_workers": rates["rate"]}


def _lengths(batch: Any) -> list[int]:
    """The documents of a batch of one row; its shift takes one token off each, which is put back."""
    import torch

    if "_packed_seq_ids" not in batch:
        return [batch["input_ids"].shape[1] + 1]
    ids = batch["_packed_seq_ids"]
    return [count + 1 for count in torch.unique(ids[ids > 0], return_counts=True)[1].tolist()]
