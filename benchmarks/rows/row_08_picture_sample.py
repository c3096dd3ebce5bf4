"""One picture sample, from its row to its tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import theirs as reference
from benchmarks.documents import as_in_a_worker
from benchmarks.inputs import processor_folder, talk, write_picture, write_talks
from benchmarks.measure import MEGABYTE, median_seconds
from benchmarks.row import Figure, Goal, Job, Rival, Row

PACK = 8
"""Such samples fill a pack of 8192."""

ROW = Row(
    title="picture sample",
    what=(
        "One sample with a JPEG of 1024×768, from its row in the file to ids, labels and patches: parse, render, "
        "decode, resize, cut into patches, tokenise. In one thread, as in a worker, and as a worker must: eight are "
        "opened and kept, which fill a pack of 8192, and an eighth of their time is what one takes. Below it, the "
        "same when each is dropped before the next is opened, which then finds its memory warm; nobody can train so. "
        "Ours also with patches left as bytes; the reference has float patches alone."
    ),
    figures=(
        Figure(name="seconds", what="time, float patches", unit="s"),
        Figure(name="seconds_dropped", what="the same, each dropped at once", unit="s"),
        Figure(name="bytes", what="pixels handed over, float", unit="MB"),
        Figure(name="seconds_uint8", what="time, byte patches", unit="s", goal=Goal(times=3)),
        Figure(name="seconds_uint8_dropped", what="the same, each dropped at once", unit="s", goal=Goal(times=3)),
        Figure(name="bytes_uint8", what="pixels handed over, bytes", unit="MB"),
        Figure(name="floor", what="of it, the JPEG decoder and the resize kernel alone", unit="s", compared=False),
    ),
    rivals=(Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),),
    bound=(
        "the JPEG decoder and torch's resize kernel: what they take alone is the last line, on either side with the "
        "decoder that it uses. Where each sample is dropped at once, they alone leave little to three times."
    ),
)


def prepare(job: Job) -> None:
    """The sample."""
    write_picture(job.inputs / "media" / "picture.jpg", width=1024, height=768, seed=0)
    write_talks(job.inputs, [talk("<image>What is this?", "A picture of soft colours.", images=["picture.jpg"])])


def ours(job: Job) -> dict[str, float]:
    """By number, as a worker of the loader does it."""
    from lading.encode import Encoder
    from lading.samples import Samples
    from lading.sources import open_corpus

    as_in_a_worker()
    encoder = Encoder.of(str(processor_folder(job)))
    corpus = open_corpus(job.inputs / "meta.json")
    floats = Samples(corpus=corpus, encoder=encoder)
    figures = _figures(
        job, lambda: floats.encode_all([0] * PACK), lambda: floats.encode(0), _weight(floats.encode(0).tensors)
    )
    numbers = Samples(corpus=corpus, encoder=encoder.in_bytes())
    in_bytes = _figures(
        job, lambda: numbers.encode_all([0] * PACK), lambda: numbers.encode(0), _weight(numbers.encode(0).tensors)
    )
    return figures | _as_bytes(in_bytes) | {"floor": _floor(job, _without_pillow)}


def _figures(job: Job, pack: Callable[[], object], one: Callable[[], object], weight: float) -> dict[str, float]:
    return {
        "seconds": median_seconds(pack, job.pick(8, 1)) / PACK,
        "seconds_dropped": median_seconds(one, job.pick(30, 2)),
        "bytes": weight,
    }


def _as_bytes(figures: Mapping[str, float]) -> dict[str, float]:
    names = {"seconds": "seconds_uint8", "seconds_dropped": "seconds_uint8_dropped", "bytes": "bytes_uint8"}
    return {names[name]: own for name, own in figures.items()}


def _weight(tensors: Mapping[str, Any]) -> float:
    """Megabytes of pixels."""
    return float(tensors["pixel_values"].numel() * tensors["pixel_values"].element_size() / MEGABYTE)


def _floor(job: Job, decode: Callable[[Path], object]) -> float:
    """Seconds for what nobody can leave out without other pixels: to decode the picture, and to resize it."""
    import torch
    from torchvision.transforms.v2 import functional

    path = job.inputs / "media" / "picture.jpg"
    pixels = torch.zeros(1, 768, 1024, 4, dtype=torch.uint8).permute(0, 3, 1, 2)

    def both() -> None:
        decode(path)
        functional.resize(pixels, [756, 1036], interpolation=functional.InterpolationMode.BICUBIC, antialias=True)

    both()
    return median_seconds(both, job.pick(30, 2))


def _by_pillow(path: Path) -> object:
    """As the reference does."""
    from PIL import Image

    return Image.open(path).load()


def _without_pillow(path: Path) -> object:
    """As ours does, where the library for it is installed."""
    try:
        import simplejpeg
    except ImportError:
        return _by_pillow(path)
    return simplejpeg.decode_jpeg(path.read_bytes(), "RGBX")


def theirs(job: Job) -> dict[str, float]:
    """By number, as a worker of its loader does it."""
    as_in_a_worker()
    samples = reference.tokenised(job.inputs / "meta.json", reference.load_processor(processor_folder(job)))
    figures = _figures(job, lambda: [samples[0] for _ in range(PACK)], lambda: samples[0], _weight(samples[0]))
    return figures | _as_bytes(figures) | {"floor": _floor(job, _by_pillow)}
