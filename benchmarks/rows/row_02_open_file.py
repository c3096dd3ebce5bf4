"""Opening a large JSONL file, for the first time and again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.inputs import text_talks, write_talks
from benchmarks.measure import reading
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="open a file",
    what=(
        "Open a JSONL file of 1,000,000 conversations (about 700 MB) until any sample can be asked for, in a folder "
        "where nothing was opened before; then again in another process. The reference keeps nothing between them, so "
        "for it both are the same. Memory is the peak during the work above what was in use before it."
    ),
    figures=(
        Figure(name="first", what="first time", unit="s", goal=Goal(times=10)),
        Figure(name="again", what="again", unit="s", goal=Goal(times=200)),
        Figure(name="resident", what="first time, resident memory", unit="MB", goal=Goal(times=20)),
        Figure(name="private", what="first time, private memory kept", unit="MB"),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    repeats=3,
    bound=(
        "finding the lines reads every byte of the file once; opening again reads the meta file, some blocks of the "
        "file and some pages of its index."
    ),
)


def prepare(job: Job) -> None:
    """The file and its meta file."""
    write_talks(job.inputs, text_talks(job.pick(1_000_000, 2_000)))


def ours(job: Job) -> dict[str, float]:
    """In a folder of its own, so that an index kept beside the file is not there yet; nor is one in a cache."""
    corpus = job.scratch / "corpus"
    corpus.mkdir()
    for path in job.inputs.iterdir():
        os.link(path, corpus / path.name)
    first = _opened(corpus / "meta.json")
    out = job.scratch / "again.json"
    command = [sys.executable, "-m", "benchmarks.child", Path(__file__).stem, "again", str(job.scratch / "job.json")]
    subprocess.run([*command, str(out)], check=True)
    return {**first, "again": json.loads(out.read_text(encoding="utf-8"))["first"]}


def again(job: Job) -> dict[str, float]:
    """The same folder, in a process that has not seen it."""
    return _opened(job.scratch / "corpus" / "meta.json")


def _opened(meta: Path) -> dict[str, float]:
    from lading.sources import open_corpus

    with reading() as read:
        corpus = open_corpus(meta)
        last = corpus.row(len(corpus) - 1)
    assert last.value["messages"]
    return {"first": read.seconds, "resident": read.resident, "private": read.private}


def theirs(job: Job) -> dict[str, float]:
    """Every line is parsed and converted."""
    from nemo_automodel.components.datasets.vlm.datasets import make_meta_dataset

    with reading() as read:
        examples = make_meta_dataset(str(job.inputs / "meta.json"))
        last = examples[-1]
    assert last["conversation"]
    return {"first": read.seconds, "again": read.seconds, "resident": read.resident, "private": read.private}
