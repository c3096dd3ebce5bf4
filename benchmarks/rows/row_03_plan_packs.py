"""Planning packs from counted lengths."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from typing import Any

from benchmarks.measure import reading
from benchmarks.row import Figure, Goal, Job, Rival, Row

PACK_SIZE = 8192
RANKS = 8
BATCH = 1000
"""Samples that TRL and LLaMA-Factory pack at a time, by default."""

ROW = Row(
    title="plan packs",
    what=(
        "Plan packs of 8192 tokens for 1,000,000 samples from lengths in memory. Ours also shuffles, and deals packs "
        "to 8 ranks. Of the reference both are timed: its whole planning (read the counts off examples in memory, then "
        "fill), and its knapsack alone. TRL (which also moves the tokens) and LLaMA-Factory pack 1000 samples at a "
        "time, as they do by default."
    ),
    figures=(
        Figure(name="seconds", what="time", unit="s", goal=Goal(times=15)),
        Figure(name="fill", what="fill", unit="%", better="more"),
    ),
    rivals=(
        Rival(name="NeMo Automodel, its planning", package="nemo-automodel", call="theirs"),
        Rival(name="NeMo Automodel, its knapsack alone", package="nemo-automodel", call="their_knapsack"),
        Rival(name="TRL, bfd", package="trl", call="trl", judged=False),
        Rival(name="LLaMA-Factory, greedy knapsack", package="llamafactory", call="llamafactory", judged=False),
    ),
    bound="memory: a million lengths are shuffled, sorted and looked up out of order some ten times.",
)


def prepare(job: Job) -> None:
    """Lengths with a long tail, 170 on average."""
    import numpy as np

    random = np.random.default_rng(0)
    drawn = random.lognormal(4.9, 0.7, size=job.pick(1_000_000, 2_000))
    np.save(job.inputs / "lengths.npy", np.clip(drawn, 16, PACK_SIZE).astype(np.int32))


def _lengths(job: Job) -> Any:
    import numpy as np

    return np.load(job.inputs / "lengths.npy")


def _fill(tokens: int, packs: int) -> float:
    return 100 * tokens / (packs * PACK_SIZE)


def ours(job: Job) -> dict[str, float]:
    """From a length table to a plan."""
    from lading.plan import make_plan
    from lading.records import LengthTable

    table = LengthTable.of(tokens=_lengths(job))
    with reading() as read:
        plan = make_plan(table, pack_size=PACK_SIZE, world_size=RANKS)
    return {"seconds": read.seconds, "fill": _fill(int(plan.tokens.sum()), len(plan))}


def theirs(job: Job) -> dict[str, float]:
    """From examples that carry their counts to bins."""
    from nemo_automodel.components.datasets.vlm.neat_packing_vlm import neat_pack_dataset_vlm

    lengths = _lengths(job).tolist()
    turns = [{"role": role, "content": [{"type": "text", "text": "…"}]} for role in ("user", "assistant")]
    # One more than the length, because it takes one off for the shift: both sides then fill with the same numbers.
    examples = [{"conversation": turns, "_text_tokens": length + 1} for length in lengths]
    with reading() as read:
        packed = neat_pack_dataset_vlm(examples, PACK_SIZE, ds_raw=examples)
    return {"seconds": read.seconds, "fill": _fill(sum(lengths), len(packed))}


def their_knapsack(job: Job) -> dict[str, float]:
    """From a list of lengths to bins."""
    from nemo_automodel.components.datasets.llm.neat_packing import greedy_knapsack

    lengths = _lengths(job).tolist()
    with reading() as read:
        bins = greedy_knapsack(lengths, PACK_SIZE)
    return {"seconds": read.seconds, "fill": _fill(sum(lengths), len(bins))}


def trl(job: Job) -> dict[str, float]:
    """From token lists to packed token lists."""
    import numpy as np
    import pyarrow as pa
    from datasets import Dataset, disable_caching, disable_progress_bars
    from trl.data_utils import pack_dataset

    disable_caching()
    disable_progress_bars()
    lengths = _lengths(job)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int32)]).astype(np.int32)
    tokens = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.zeros(offsets[-1], dtype=np.int32)))
    samples = Dataset(pa.table({"input_ids": tokens}))
    with reading() as read:
        packed = pack_dataset(samples, PACK_SIZE, strategy="bfd", map_kwargs={"batch_size": BATCH})
    return {"seconds": read.seconds, "fill": _fill(int(lengths.sum()), len(packed))}


def llamafactory(job: Job) -> dict[str, float]:
    """From lists of lengths to knapsacks. Its file is loaded by itself: its package imports peft and more."""
    from importlib.metadata import distribution

    file = distribution("llamafactory").locate_file("llamafactory/data/processor/processor_utils.py")
    greedy_knapsack = runpy.run_path(str(file))["greedy_knapsack"]
    lengths: Sequence[int] = _lengths(job).tolist()
    batches = [list(lengths[start : start + BATCH]) for start in range(0, len(lengths), BATCH)]
    with reading() as read:
        packs = sum(len(greedy_knapsack(batch, PACK_SIZE)) for batch in batches)
    return {"seconds": read.seconds, "fill": _fill(sum(lengths), packs)}
