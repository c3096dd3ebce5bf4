"""Documents with a picture each that fill one long pack; two rows use them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from benchmarks import theirs as reference
from benchmarks.inputs import processor_folder, sentence, talk, write_picture, write_talks
from benchmarks.row import Job

PACK_SIZE = 32768
DOCUMENTS = 64
SIDE = 224


def prepare(job: Job) -> None:
    """Documents of about 500 tokens, each with a picture of 224×224."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(processor_folder(job))
    write_talks(job.inputs, _talks(job, tokenizer))


def _talks(job: Job, tokenizer: Any) -> Iterator[dict[str, Any]]:
    dice = random.Random(0)
    for number in range(job.pick(DOCUMENTS, 4)):
        write_picture(job.inputs / "media" / f"{number}.jpg", width=SIDE, height=SIDE, seed=number)
        answer = sentence(dice)
        while len(tokenizer.encode(answer)) < 390:
            answer = f"{answer} {sentence(dice)}"
        yield talk("<image>What is this?", answer, images=[f"{number}.jpg"])


def as_in_a_worker() -> None:
    """One thread, which is what torch gives each worker of a loader, of ours and of theirs."""
    import torch

    torch.set_num_threads(1)


def own_samples(job: Job) -> tuple[Any, list[Any]]:
    """What is known of the processor, and the documents with pixels in bytes, as the loader's workers open them."""
    from lading.encode import Encoder
    from lading.records import Encoded
    from lading.samples import Samples
    from lading.sources import open_corpus

    as_in_a_worker()
    encoder = Encoder.of(str(processor_folder(job)))
    samples = Samples(corpus=open_corpus(job.inputs / "meta.json"), encoder=encoder).in_bytes()
    encoded = [samples.encode(index) for index in range(len(samples))]
    assert all(isinstance(sample, Encoded) for sample in encoded)
    return encoder.facts, encoded


def their_samples(job: Job) -> tuple[Any, list[Any]]:
    """Their processor, and the tokenised documents with their pixels."""
    as_in_a_worker()
    processor = reference.load_processor(processor_folder(job))
    samples = reference.tokenised(job.inputs / "meta.json", processor)
    return processor, [samples[index] for index in range(len(samples))]


def their_pack(processor: Any, samples: list[Any], *, three_way: bool) -> Any:
    """One pack, made as its `PackedDatasetWrapper` makes it; calling the result makes it once more."""
    from nemo_automodel.components.datasets.vlm.neat_packing_vlm import PackedDatasetWrapper

    packed = PackedDatasetWrapper(
        samples,
        [list(range(len(samples)))],
        PACK_SIZE,
        padding_idx=processor.tokenizer.pad_token_id,
        get_rope_index=reference.rope_index(processor) if three_way else None,
    )
    return lambda: packed[0]
