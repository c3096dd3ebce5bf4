"""Samples that a packed epoch loses without training on them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from benchmarks.inputs import processor_folder, talk, text_talks, write_talks
from benchmarks.row import Figure, Goal, Job, Rival, Row

PACK_SIZES = (2048, 4096)

ROW = Row(
    title="samples lost",
    what=(
        "Pack the 999 conversations of alpaca_en_demo and walk a whole epoch: how many samples are never trained on, "
        "and how full the packs are. The reference packs with its four ways to guess lengths, without the placeholder "
        "images that it adds to text by default: with them it loses more."
    ),
    figures=tuple(
        figure
        for size in PACK_SIZES
        for figure in (
            Figure(name=f"lost_{size}", what=f"samples lost, packs of {size}", goal=Goal(at_most=0)),
            Figure(
                name=f"fill_{size}", what=f"fill, packs of {size}", unit="%", better="more", goal=Goal(at_least=99.0)
            ),
        )
    ),
    rivals=(
        Rival(name="NeMo Automodel, no counts", package="nemo-automodel", call="theirs_guessed"),
        Rival(name="NeMo Automodel, no counts, 10 % headroom", package="nemo-automodel", call="theirs_guessed_roomy"),
        Rival(name="NeMo Automodel, its own counts", package="nemo-automodel", call="theirs_counted"),
        Rival(name="NeMo Automodel, its own counts, 10 % headroom", package="nemo-automodel", call="theirs_roomy"),
    ),
    repeats=1,
)


def prepare(job: Job) -> None:
    """The conversations as JSONL, once as they are and once with the counts the reference works out beforehand."""
    rows = list(_talks(job))
    write_talks(job.inputs / "plain", rows)
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(processor_folder(job))
    counted = [{**row, "_text_tokens": _text_tokens(row, tokenizer)} for row in rows]
    write_talks(job.inputs / "counted", counted)


def _talks(job: Job) -> Iterator[dict[str, Any]]:
    if job.shared is None:
        yield from text_talks(job.pick(999, 99))
        return
    rows = json.loads((job.shared / "data" / "alpaca_en_demo.json").read_text(encoding="utf-8"))
    for row in rows[: job.pick(None, 99)]:
        yield talk("\n".join(part for part in (row["instruction"], row["input"]) if part), row["output"])


def _text_tokens(row: dict[str, Any], tokenizer: Any) -> int:
    """As its `scripts/precompute_tokens.py` says it: the turns' texts joined by newlines, without the template."""
    texts = [message["content"].strip() for message in row["messages"]]
    return len(tokenizer.encode("\n".join(text for text in texts if text), add_special_tokens=False))


def ours(job: Job) -> dict[str, float]:
    """A whole epoch of the loader; what was trained on is read off the batches, not off its ledger."""
    from lading import Loader

    figures: dict[str, float] = {}
    for size in PACK_SIZES:
        loader = Loader(job.inputs / "plain" / "meta.json", str(processor_folder(job)), pack_size=size)
        rows = [row for batch in loader for row in batch.rows]
        documents = [document for row in rows for document in row]
        figures[f"lost_{size}"] = len(loader.samples) - len({document.key.index for document in documents})
        figures[f"fill_{size}"] = 100 * sum(document.tokens for document in documents) / (len(rows) * size)
    return figures


def theirs_guessed(job: Job) -> dict[str, float]:
    """Lengths guessed from characters."""
    return _theirs(job, "plain", 1.0)


def theirs_guessed_roomy(job: Job) -> dict[str, float]:
    """Lengths guessed from characters, packs planned to nine tenths."""
    return _theirs(job, "plain", 0.9)


def theirs_counted(job: Job) -> dict[str, float]:
    """Lengths counted by its script."""
    return _theirs(job, "counted", 1.0)


def theirs_roomy(job: Job) -> dict[str, float]:
    """Lengths counted by its script, packs planned to nine tenths."""
    return _theirs(job, "counted", 0.9)


def _theirs(job: Job, inputs: str, ratio: float) -> dict[str, float]:
    from nemo_automodel.components.datasets.vlm.datasets import PreTokenizedDatasetWrapper, make_meta_dataset
    from nemo_automodel.components.datasets.vlm.neat_packing_vlm import neat_pack_dataset_vlm
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(processor_folder(job))
    raw = make_meta_dataset(str(job.inputs / inputs / "meta.json"))
    tokenised = PreTokenizedDatasetWrapper(raw, processor, inject_fake_images=False)
    figures: dict[str, float] = {}
    for size in PACK_SIZES:
        packed = neat_pack_dataset_vlm(
            tokenised,
            size,
            padding_idx=processor.tokenizer.pad_token_id,
            ds_raw=raw,
            packing_ratio=ratio,
            processor=processor,
        )
        lengths = [length for number in range(len(packed)) for length in packed[number]["seq_lens"] if length]
        figures[f"lost_{size}"] = len(raw) - len(lengths)
        figures[f"fill_{size}"] = 100 * sum(lengths) / (len(packed) * size)
    return figures
