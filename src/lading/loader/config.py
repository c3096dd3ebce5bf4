"""What the user may ask for. Every mistake is told at once."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, get_args

from lading.errors import ConfigError, UnknownName
from lading.family import ATTENTIONS, PIXELS, Attention, Pixels
from lading.plan.knapsack import ALGORITHMS
from lading.plan.make import DEFAULT_ALGORITHM, DEFAULT_PLACING
from lading.plan.order import PLACINGS
from lading.samples.truncation import TOO_LONG, TooLong

LEAST: Final = {
    "pack_size": 1,
    "batch_size": 1,
    "world_size": 1,
    "rank": 0,
    "seed": 0,
    "epoch": 0,
    "num_workers": 0,
    "count_workers": 0,
    "max_failures": 0,
}
"""Options that are whole numbers, and the least each may be."""
MOST_SECONDS: Final = 100_000_000
"""Seconds that a sample may be given: three years. Timers of the system take no endless ones."""
LastStep = Literal["repeat", "drop"]
CHOICES: Final = {
    "attention": ATTENTIONS,
    "pixels": PIXELS,
    "algorithm": tuple(ALGORITHMS),
    "placing": tuple(PLACINGS),
    "last_step": get_args(LastStep),
    "too_long": TOO_LONG,
}
"""Options that are one of a few names."""
DECODE_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderConfig:
    """Options of the loader.

    >>> LoaderConfig.of(pack_size=0, seed=-1, attention="flash")
    Traceback (most recent call last):
        ...
    lading.errors.ConfigError: found pack_size 0 (wanted a whole number from 1 up), seed -1 (…), attention 'flash' (…)
    """

    pack_size: int
    batch_size: int = 1
    """Packs in a batch. With flash attention keep it at 1: it finds documents in a single row only. (With
    `attention="varlen"`, which hands their borders over, any number will do.)"""
    world_size: int = 1
    rank: int = 0
    seed: int = 0
    epoch: int = 0
    num_workers: int = 0
    count_workers: int = 0
    """Processes that count the corpus, where its lengths are not kept already; 0 and 1: this one alone."""
    cache: bool | str | os.PathLike[str] = True
    """Whether counted lengths are kept, or the folder they are kept in (see `docs/counting.md`)."""
    attention: Attention = "positions"
    """How documents are kept apart: `positions` (no mask leaves a worker), a dense `mask`, or the borders of documents
    besides (`varlen`, for `lading.attention`)."""
    algorithm: str = DEFAULT_ALGORITHM
    """How samples are put into packs."""
    placing: str = DEFAULT_PLACING
    """How packs are put on (step, rank)."""
    last_step: LastStep = "repeat"
    """Where packs do not come out even among the ranks: `repeat` some in the last step, or `drop` those left over. Both
    are named in the ledger."""
    too_long: TooLong = "drop"
    """What becomes of a sample longer than a pack: `drop`, or `truncate` it behind the last answer that fits."""
    strict: bool = False
    """Raise at the first bad sample instead of writing it into the ledger."""
    max_failures: int = 100
    """How many samples may fail after they were counted and planned, before the run stops."""
    decode_seconds: float | None = DECODE_SECONDS
    """How long a sample may take to be read, before it is given up by name (see `docs/workers.md`); `None`: forever."""
    fixed_length: bool = False
    """Pad every row to `pack_size`, for compiled models."""
    placeholder_media: bool = False
    """Add a picture, in a trailing document of its own, to batches without pictures and clips: under DDP, FSDP and ZeRO
    every rank needs a vision pass. Packs leave room for it, so that no row is longer than `pack_size`."""

    pixels: Pixels = "model"
    """What pixels are: what the `model` expects, or `uint8` bytes, an eighth of it, that `loader.normalise` turns into
    that where the model is."""
    draft: bool = False
    """Decode a large JPEG at a half, a quarter or an eighth of its size where that is enough: faster, other pixels."""

    @classmethod
    def of(cls, **options: Any) -> LoaderConfig:
        """A checked configuration from keyword options."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise UnknownName(kind="option", name=name, known=known, where="Loader")
        if "pack_size" not in options:
            raise ConfigError(found="no pack_size", wanted="the number of tokens in a pack", where="Loader")
        problems = [problem for name, value in options.items() if (problem := _problem(name, value))]
        rank, world_size = options.get("rank", 0), options.get("world_size", 1)
        if not problems and rank >= world_size:
            problems.append(f"rank {rank} (wanted 0 to {world_size - 1}, at world size {world_size})")
        if problems:
            raise ConfigError(found=", ".join(problems), where="Loader")
        return cls(**options)


def _problem(name: str, value: object) -> str:
    """What is wrong with one option; nothing where all is well."""
    if name in CHOICES:
        return "" if value in CHOICES[name] else f"{name} {value!r} (wanted one of {', '.join(CHOICES[name])})"
    if name in LEAST:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= LEAST[name]
        return "" if good else f"{name} {value!r} (wanted a whole number from {LEAST[name]} up)"
    if name == "decode_seconds":
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
        good = value is None or 0 < number <= MOST_SECONDS
        return "" if good else f"decode_seconds {value!r} (wanted seconds above 0, at most {MOST_SECONDS:,}, or None)"
    if name == "cache":
        good = isinstance(value, (bool, str, os.PathLike))
        return "" if good else f"cache {value!r} (wanted True, False or a folder)"
    return "" if isinstance(value, bool) else f"{name} {value!r} (wanted True or False)"
