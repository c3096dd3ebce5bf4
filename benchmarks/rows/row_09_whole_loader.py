"""The whole loader over pictures."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any, Literal

from benchmarks import theirs as reference
from benchmarks.inputs import picture_talks, processor_folder, write_talks
from benchmarks.row import Figure, Goal, Job, Rival, Row

PACK_SIZE = 8192
WORKERS = 2

ROW = Row(
    title="whole loader",
    what=(
        "An epoch over 400 conversations about JPEGs of about 1024×768, two workers, packs of 8192: tokens of "
        "documents handed over in a second, padding not counted, from the first request to the last batch; and the "
        "same with opening, counting and planning included. Ours with pixels as floats, its default, and as bytes, "
        "which the accelerator turns into floats; the reference has floats alone. It is handed exact counts (text, "
        "template and media), which it cannot work out for itself: with its own it would lose samples."
    ),
    figures=(
        Figure(name="rate", what="epoch alone, floats", unit="tokens/s", better="more", goal=Goal(times=3)),
        Figure(name="rate_uint8", what="epoch alone, bytes", unit="tokens/s", better="more", goal=Goal(times=3)),
        Figure(name="rate_from_start", what="from opening on, floats", unit="tokens/s", better="more"),
        Figure(name="documents", what="documents handed over", compared=False),
    ),
    rivals=(
        Rival(name="NeMo Automodel, flash attention", package="nemo-automodel", call="theirs"),
        Rival(name="NeMo Automodel, SDPA", package="nemo-automodel", call="theirs_sdpa"),
    ),
    repeats=3,
    bound=(
        "with floats, the kernel: 19 MB for a picture of 1024×768 are zeroed and mapped before they are written. With "
        "bytes, decoding and resizing; see the row of one picture."
    ),
)


def prepare(job: Job) -> None:
    """The pictures; then every row again with its exact counts."""
    from lading.encode import Encoder
    from lading.lengths import count_lengths
    from lading.samples import Samples
    from lading.sources import open_corpus

    plain = write_talks(job.inputs / "plain", picture_talks(job.inputs / "plain", job.pick(400, 6)))
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
    """The loader at its defaults, then with byte pixels."""
    from lading import Loader, load_processor

    processor = load_processor(str(processor_folder(job)))

    def rates(pixels: Literal["model", "uint8"]) -> dict[str, float]:
        begun = time.perf_counter()
        meta = job.inputs / "plain" / "meta.json"
        # Lengths are counted anew for each: the one must not find what the other kept.
        loader = Loader(meta, processor, pack_size=PACK_SIZE, num_workers=WORKERS, pixels=pixels, cache=False)
        return _rates(begun, ([document.tokens for row in batch.rows for document in row] for batch in loader))

    return {**rates("model"), "rate_uint8": rates("uint8")["rate"]}


def theirs(job: Job) -> dict[str, float]:
    """Without a dense mask."""
    return _theirs(job, "flash_attention_2")


def theirs_sdpa(job: Job) -> dict[str, float]:
    """With a dense mask, its default."""
    return _theirs(job, "sdpa")


def _theirs(job: Job, attention: str) -> dict[str, float]:
    options: dict[str, Any] = {"pack_size": PACK_SIZE, "workers": WORKERS, "attention": attention, "three_way": True}
    make = reference.loader_maker(job.inputs / "counted" / "meta.json", processor_folder(job), **options)
    begun = time.perf_counter()
    loader = make()
    rates = _rates(begun, (_lengths(batch) for batch in loader))
    return {**rates, "rate_uint8": rates["rate"]}


def _lengths(batch: Any) -> list[int]:
    """The documents of a batch of one row; its shift takes one token off each, which is put back."""
    import torch

    if "_packed_seq_ids" not in batch:
        return [batch["input_ids"].shape[1] + 1]
    ids = batch["_packed_seq_ids"]
    return [count + 1 for count in torch.unique(ids[ids > 0], return_counts=True)[1].tolist()]


def _rates(begun: float, batches: Iterable[list[int]]) -> dict[str, float]:
    start = time.perf_counter()
    lengths = [length for batch in batches for length in batch]
    end = time.perf_counter()
    return {
        "rate": sum(lengths) / (end - start),
        "rate_from_start": sum(lengths) / (end - begun),
        "documents": len(lengths),
    }
