"""The whole loader over pictures, beside LLaMA-Factory's."""

from __future__ import annotations

from benchmarks import llama_factory, pictures
from benchmarks.inputs import processor_folder
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="whole loader, LLaMA-Factory",
    what=(
        "The row of the whole loader over the same 400 JPEGs with the same processor and two workers, beside "
        "LLaMA-Factory's: its reading, templates, tokens, packing and collator, behind the Trainer's data loader. "
        "Packs of 8192 (neat_packing, without a dense mask), and padded rows, seven to a batch. Pictures keep their "
        "size (by default it makes them smaller). Its workers hand over floats (compute_dtype is float32)."
    ),
    figures=(
        Figure(name="rate", what="epoch alone, all read", unit="tokens/s", better="more", goal=Goal(times=1.8)),
        Figure(name="rate_workers", what="epoch alone, workers", unit="tokens/s", better="more", goal=Goal(times=2.8)),
        Figure(name="rate_from_start", what="from opening on, all read", unit="tokens/s", better="more"),
        Figure(name="documents", what="documents handed over", compared=False),
    ),
    rivals=(
        Rival(name="LLaMA-Factory, packs", package="llamafactory", call="theirs_packed"),
        Rival(name="LLaMA-Factory, padded rows", package="llamafactory", call="theirs_padded"),
    ),
    bound="decoding and resizing; see the row of one picture. On two cores, scaling takes a part of their time.",
)


def prepare(job: Job) -> None:
    """The pictures, and what LLaMA-Factory wants to know of their rows."""
    llama_factory.write_dataset_info(pictures.write_corpus(job).parent)


def ours(job: Job) -> dict[str, float]:
    """The loader at its defaults."""
    return pictures.our_rates(job)


def theirs_packed(job: Job) -> dict[str, float]:
    """Packs whose documents do not see each other."""
    return _theirs(job, packed=True)


def theirs_padded(job: Job) -> dict[str, float]:
    """Rows filled up to the longest."""
    return _theirs(job, packed=False)


def _theirs(job: Job, *, packed: bool) -> dict[str, float]:
    maker = llama_factory.TrainingLoader(
        job.inputs / pictures.PLAIN,
        processor_folder(job),
        job.scratch,
        pack_size=pictures.PACK_SIZE,
        workers=pictures.WORKERS,
        packed=packed,
    )
    rates = pictures.rates(lambda: (llama_factory.document_lengths(batch) for batch in maker.open()))
    return {**rates, "rate_workers": rates["rate"]}
