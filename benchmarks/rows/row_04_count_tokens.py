"""Counting the tokens of a corpus."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

from benchmarks.inputs import chinese_talks, processor_folder, text_talks, write_talks
from benchmarks.measure import reading
from benchmarks.row import Figure, Goal, Job, Rival, Row

WORKERS = 2
CHUNK = 2000
CHECKED = 1000
CHINESE = "chinese"

ROW = Row(
    title="count tokens",
    what=(
        "Count the tokens of 100,000 conversations of text with two workers, and compare 1000 of the counts with what "
        "the processor itself makes of the sample. The text is in Latin letters; below it, 20,000 conversations in "
        "Chinese characters. Ours runs the chat template and finds the labels, too; it encodes by gigatoken. The "
        "reference's counting is a script outside its wheel; its way (lines to worker processes, texts joined by "
        "newlines and encoded, the count written back into every line) is followed here with the tokenizer loaded "
        "before the clock starts."
    ),
    figures=(
        Figure(name="seconds", what="time", unit="s", goal=Goal(times=3.3)),
        Figure(name="wrong", what="counts that are wrong, in 1000", goal=Goal(at_most=0)),
        Figure(name="seconds_chinese", what="time, Chinese", unit="s", goal=Goal(times=1.3)),
    ),
    rivals=(Rival(name="NeMo Automodel, its script's way", package="nemo-automodel", call="theirs"),),
    repeats=5,
    bound=(
        "by profile, Python's work on each sample: two fifths to run the chat template, a quarter to read its row and "
        "make records of it. Encoding the text takes a tenth."
    ),
)


def prepare(job: Job) -> None:
    """The conversations."""
    write_talks(job.inputs, text_talks(job.pick(100_000, 500)))
    write_talks(job.inputs / CHINESE, chinese_talks(job.pick(20_000, 100)))


def _true_lengths(job: Job, processor: Any) -> list[int]:
    """What the processor makes of the first samples."""
    with (job.inputs / "talks.jsonl").open(encoding="utf-8") as file:
        talks = [json.loads(line)["messages"] for line, _ in zip(file, range(CHECKED), strict=False)]
    texts = [processor.apply_chat_template(talk, tokenize=False) for talk in talks]
    return [len(ids) for ids in processor.tokenizer(texts)["input_ids"]]


def ours(job: Job) -> dict[str, float]:
    """The whole length table, labels and media included."""
    from lading.encode import Encoder
    from lading.lengths import count_lengths
    from lading.samples import Samples
    from lading.sources import open_corpus

    encoder = Encoder.of(str(processor_folder(job)))
    with reading() as read:
        table = count_lengths(Samples(corpus=open_corpus(job.inputs / "meta.json"), encoder=encoder), workers=WORKERS)
    true = _true_lengths(job, encoder.facts.processor)
    with reading() as chinese:
        count_lengths(Samples(corpus=open_corpus(job.inputs / CHINESE / "meta.json"), encoder=encoder), workers=WORKERS)
    wrong = sum(a != b for a, b in zip(true, table.tokens.tolist(), strict=False))
    return {"seconds": read.seconds, "wrong": wrong, "seconds_chinese": chinese.seconds}


_TOKENIZER: list[Any] = []


def _counted(lines: list[str]) -> list[str]:
    """In a worker: lines with their counts."""
    (tokenizer,) = _TOKENIZER
    results = []
    for line in lines:
        row = json.loads(line)
        texts = [message["content"].strip() for message in row["messages"]]
        row["_text_tokens"] = len(tokenizer.encode("\n".join(filter(None, texts)), add_special_tokens=False))
        results.append(json.dumps(row, ensure_ascii=False) + "\n")
    return results


def theirs(job: Job) -> dict[str, float]:
    """Lines in, lines with counts out."""
    from transformers import AutoProcessor

    processor = AutoProcessor.from_pretrained(processor_folder(job))
    _TOKENIZER.append(processor.tokenizer)
    with multiprocessing.get_context("fork").Pool(WORKERS) as pool:
        with reading() as read:
            out = _count_file(job.inputs / "talks.jsonl", job.scratch / "counted.jsonl", pool)
        with reading() as chinese:
            _count_file(job.inputs / CHINESE / "talks.jsonl", job.scratch / "chinese.jsonl", pool)
    with out.open(encoding="utf-8") as file:
        tokens = [json.loads(line)["_text_tokens"] for line, _ in zip(file, range(CHECKED), strict=False)]
    true = _true_lengths(job, processor)
    wrong = sum(a != b for a, b in zip(true, tokens, strict=True))
    return {"seconds": read.seconds, "wrong": wrong, "seconds_chinese": chinese.seconds}


def _count_file(talks: Path, out: Path, pool: Any) -> Path:
    with talks.open(encoding="utf-8") as file:
        lines = [line for line in file if line.strip()]
    chunks = [lines[start : start + CHUNK] for start in range(0, len(lines), CHUNK)]
    with out.open("w", encoding="utf-8") as file:
        for counted in pool.imap(_counted, chunks):
            file.writelines(counted)
    return out
