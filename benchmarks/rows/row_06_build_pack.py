"""Building one long pack of encoded documents."""

from __future__ import annotations

from benchmarks import documents
from benchmarks.measure import median_seconds
from benchmarks.row import Figure, Goal, Job, Rival, Row

ROW = Row(
    title="build a pack",
    what=(
        "Build one pack of 32k tokens of 64 documents with a picture each, from documents that are tokenised and have "
        "their pixels: join, shift, number positions; in one thread, as in a worker. Ours numbers them in three ways, "
        "as Qwen2.5-VL does; so does the reference when it is given the model's function, and without it numbers them "
        "plainly. Ours joins bytes, and is timed twice: with pixels='uint8', where that is all, and by default, where "
        "the whole pack is then scaled to float32; the reference joins float32, and scaled it when it opened the "
        "documents, which is not timed."
    ),
    figures=(
        Figure(name="seconds_uint8", what="time, byte pixels", unit="s", goal=Goal(times=8)),
        Figure(name="seconds", what="time, float pixels", unit="s", goal=Goal(times=8)),
        Figure(name="tokens", what="tokens in the pack", compared=False),
    ),
    rivals=(
        Rival(name="NeMo Automodel", package="nemo-automodel", call="theirs"),
        Rival(name="NeMo Automodel, plain positions", package="nemo-automodel", call="theirs_plain"),
    ),
    bound="writing 77 MB of float pixels, which both sides do: by profile, all but a few milliseconds of ours.",
)
prepare = documents.prepare


def ours(job: Job) -> dict[str, float]:
    """With three-way positions; pixels left in bytes, and scaled."""
    from lading.media.normalise import normalised
    from lading.packing import build_pack

    facts, samples = documents.own_samples(job)
    options = {"fields": facts.family.table, "three_way": facts.three_way}
    return {
        "seconds_uint8": median_seconds(lambda: build_pack(samples, **options), 20),
        "seconds": median_seconds(
            lambda: normalised(build_pack(samples, **options).tensors, facts.raw.scales if facts.raw else {}), 20
        ),
        "tokens": build_pack(samples, **options).length,
    }


def theirs(job: Job) -> dict[str, float]:
    """With three-way positions."""
    return _theirs(job, three_way=True)


def theirs_plain(job: Job) -> dict[str, float]:
    """With plain positions."""
    return _theirs(job, three_way=False)


def _theirs(job: Job, *, three_way: bool) -> dict[str, float]:
    build = documents.their_pack(*documents.their_samples(job), three_way=three_way)
    seconds = median_seconds(build, 10)
    return {"seconds_uint8": seconds, "seconds": seconds, "tokens": len(build()["input_ids"])}
