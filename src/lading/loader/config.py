"""What the user may ask for. Every mistake is told at once."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from lading.errors import ConfigError, UnknownName
from lading.family import ATTENTIONS, Attention
from lading.plan.knapsack import ALGORITHMS
from lading.plan.make import DEFAULT_ALGORITHM


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderConfig:
    """Options of the loader.

    >>> LoaderConfig.of(pack_size=0, batch_size=0)
    Traceback (most recent call last):
        ...
    lading.errors.ConfigError: found pack_size 0, batch_size 0; wanted 1 or more [Loader]
    """

    pack_size: int
    batch_size: int = 1
    """Packs in a batch."""
    world_size: int = 1
    rank: int = 0
    seed: int = 0
    epoch: int = 0
    num_workers: int = 0
    attention: Attention = "positions"
    """How documents are kept apart: `positions` (no mask leaves a worker) or a dense `mask`."""
    algorithm: str = DEFAULT_ALGORITHM
    strict: bool = False
    """Raise at the first bad sample instead of writing it into the ledger."""
    max_failures: int = 100
    """How many samples may fail after they were counted and planned, before the run stops."""
    fixed_length: bool = False
    """Pad every row to `pack_size`, for compiled models."""
    placeholder_media: bool = False
    """Add a picture in a trailing document of its own to batches without media (FSDP and ZeRO need a vision pass)."""

    @classmethod
    def of(cls, **options: Any) -> LoaderConfig:
        """A checked configuration from keyword options."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise UnknownName(kind="option", name=name, known=known, where="Loader")
        if "pack_size" not in options:
            raise ConfigError(found="no pack_size", wanted="the number of tokens in a pack", where="Loader")
        config = cls(**options)
        config._check()
        return config

    def _check(self) -> None:
        low = {"pack_size": 1, "batch_size": 1, "world_size": 1, "num_workers": 0, "max_failures": 0, "epoch": 0}
        for bound in (1, 0):
            names = [name for name, least in low.items() if least == bound]
            wrong = [f"{name} {value}" for name, value in self._values(names) if value < bound]
            if wrong:
                raise ConfigError(found=", ".join(wrong), wanted=f"{bound} or more", where="Loader")
        if not 0 <= self.rank < self.world_size:
            raise ConfigError(
                found=f"rank {self.rank}", wanted=f"0 to {self.world_size - 1} (world size {self.world_size})"
            )
        if self.attention not in ATTENTIONS:
            raise UnknownName(kind="attention", name=str(self.attention), known=ATTENTIONS, where="Loader")
        if self.algorithm not in ALGORITHMS:
            raise UnknownName(kind="packing algorithm", name=self.algorithm, known=ALGORITHMS, where="Loader")

    def _values(self, names: list[str]) -> list[tuple[str, int]]:
        return [(name, getattr(self, name)) for name in names]
