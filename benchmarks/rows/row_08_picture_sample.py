"""One picture sample, from its row to its tensors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import theirs as reference
from benchmarks.documents import as_in_a_worker
from benchmarks.inputs import processor_folder, talk, write_picture, write_talks
from benchmarks.measure import MEGABYTE, median_seconds
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="picture sample",
    what=(
        "One sample with a JPEG of 1024×768, from its row in the file to ids, labels and patches: parse, render, "
        "decode, resize, cut into patches, tokenise. One sample after the other, in one thread, as in a worker. Ours "
        "also with patches left as bytes; the reference has float patches alone."
    ),
    figures=(
        Figure(name="seconds", what="time, float patches", unit="s"),
        Figure(name="bytes", what="pixels handed over, float", unit="MB"),
        Figure(name="seconds_uint8", what="time, byte patches", unit="s", goal=Goal(times=3)),
        Figure(name="bytes_uint8", what="pixels handed over, bytes", unit="MB"),
        Figure(name="floor", what="of it, the JPEG decoder and the resize kernel alone", unit="s", compared=False),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    bound="the JPEG decoder and torch's resize kernel, which both sides ask: what they take alone is the last line.",
)


def prepare(job: Job) -> None:
    """The sample."""
    write_picture(job.inputs / "media" / "picture.jpg", width=1024, height=768, seed=0)
    write_talks(job.inputs, [talk("<image>What is this?", "A picture of soft colours.", images=["picture.jpg"])])


def ours(job: Job) -> dict[str, float]:
    """By number, as a worker of the loader does it."""
    from lading.loader import Samples, load_processor, read_processor
    from lading.sources import open_corpus

    as_in_a_worker()
    border = read_processor(load_processor(str(processor_folder(job))))
    corpus = open_corpus(job.inputs / "meta.json")
    seconds, weight = _encoded(job, Samples(corpus=corpus, border=border))
    figures = {"seconds": seconds, "bytes": weight}
    seconds, weight = _encoded(job, Samples(corpus=corpus, border=border, pixels="uint8"))
    return figures | {"seconds_uint8": seconds, "bytes_uint8": weight, "floor": _floor(job)}


def _encoded(job: Job, samples: Any) -> tuple[float, float]:
    """Seconds, and megabytes of pixels."""
    pixels = samples.encode(0).tensors["pixel_values"]
    return (
        median_seconds(lambda: samples.encode(0), job.pick(30, 2)),
        pixels.numel() * pixels.element_size() / MEGABYTE,
    )


def _floor(job: Job) -> float:
    """Seconds for what nobody can leave out without other pixels: to decode the picture, and to resize it.

    By Pillow in the reference's environment, as it does; in ours by the same library without Pillow.
    """
    import torch
    from torchvision.transforms.v2 import functional

    path = job.inputs / "media" / "picture.jpg"
    pixels = torch.zeros(1, 768, 1024, 4, dtype=torch.uint8).permute(0, 3, 1, 2)

    def both() -> None:
        decode(path)
        functional.resize(pixels, [756, 1036], interpolation=functional.InterpolationMode.BICUBIC, antialias=True)

    decode = _decoder()
    both()
    return median_seconds(both, job.pick(30, 2))


def _decoder() -> Callable[[Path], object]:
    try:
        import simplejpeg
    except ImportError:
        from PIL import Image

        return lambda path: Image.open(path).load()
    return lambda path: simplejpeg.decode_jpeg(path.read_bytes(), "RGBX")


def theirs(job: Job) -> dict[str, float]:
    """By number, as a worker of its loader does it."""
    as_in_a_worker()
    samples = reference.tokenised(job.inputs / "meta.json", reference.load_processor(processor_folder(job)))
    pixels = samples[0]["pixel_values"]
    seconds = median_seconds(lambda: samples[0], job.pick(30, 2))
    weight = pixels.numel() * pixels.element_size() / MEGABYTE
    return {"seconds": seconds, "bytes": weight, "seconds_uint8": seconds, "bytes_uint8": weight, "floor": _floor(job)}
