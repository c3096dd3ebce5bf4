"""One picture sample, from its row to its tensors."""

from __future__ import annotations

from benchmarks import theirs as reference
from benchmarks.inputs import processor_folder, talk, write_picture, write_talks
from benchmarks.measure import median_seconds
from benchmarks.row import Figure, Job, Rival, Row

ROW = Row(
    title="picture sample",
    what=(
        "One sample with a JPEG of 1024×768, from its row in the file to ids, labels and patches: parse, render, "
        "decode, resize, cut into patches, tokenise. One sample after the other, in one process."
    ),
    figures=(
        Figure(name="seconds", what="time, float patches", unit="s"),
        Figure(name="bytes", what="pixels handed over", unit="MB"),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    bound="decoding and resizing the JPEG, and the processor's own float patches, which both sides ask of it.",
)


def prepare(job: Job) -> None:
    """The sample."""
    write_picture(job.inputs / "media" / "picture.jpg", width=1024, height=768, seed=0)
    write_talks(job.inputs, [talk("<image>What is this?", "A picture of soft colours.", images=["picture.jpg"])])


def ours(job: Job) -> dict[str, float]:
    """By number, as a worker of the loader does it."""
    from lading.loader import Samples, load_processor, read_processor
    from lading.records import Encoded
    from lading.sources import open_corpus

    border = read_processor(load_processor(str(processor_folder(job))))
    samples = Samples(corpus=open_corpus(job.inputs / "meta.json"), border=border)
    encoded = samples.encode(0)
    assert isinstance(encoded, Encoded)
    pixels = encoded.tensors["pixel_values"]
    return {
        "seconds": median_seconds(lambda: samples.encode(0), job.pick(30, 2)),
        "bytes": pixels.numel() * pixels.element_size() / 1e6,
    }


def theirs(job: Job) -> dict[str, float]:
    """By number, as a worker of its loader does it."""
    samples = reference.tokenised(job.inputs / "meta.json", reference.load_processor(processor_folder(job)))
    pixels = samples[0]["pixel_values"]
    return {
        "seconds": median_seconds(lambda: samples[0], job.pick(30, 2)),
        "bytes": pixels.numel() * pixels.element_size() / 1e6,
    }
