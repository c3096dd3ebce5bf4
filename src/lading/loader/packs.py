"""Pack number → pack, in a worker; packs → batch, in the same worker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch.utils.data import Dataset

from lading.collate import collate_packs
from lading.errors import TooManyFailures
from lading.loader.config import LoaderConfig
from lading.loader.samples import Samples
from lading.materialise import append_untrained, build_pack
from lading.media import placeholder
from lading.records import Batch, Dropped, Encoded, LengthTable, Pack, PackPlan

MAX_ATTEMPTS = 10


class PackDataset(Dataset[Pack]):
    """The packs of a plan. A pack whose documents all fail is replaced by another, named, never left out of step."""

    def __init__(self, samples: Samples, table: LengthTable, plan: PackPlan) -> None:
        self.samples, self.table, self.plan = samples, table, plan

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int) -> Pack:
        failed: list[Dropped] = []
        for attempt in range(MAX_ATTEMPTS):
            chosen = number if attempt == 0 else self._replacement(number, attempt)
            good, bad = self._open(chosen)
            failed += bad if attempt == 0 else []
            if good:
                keys = tuple(sample.document.key for sample in good)
                dropped = failed if attempt == 0 else [replace(entry, by=keys) for entry in failed]
                border = self.samples.border
                return build_pack(
                    good, fields=border.family.table, three_way=border.three_way, number=number, dropped=dropped
                )
        raise TooManyFailures(
            found=f"{MAX_ATTEMPTS} packs in a row without one readable document",
            wanted="documents that were counted to stay readable",
            consequence="first cause: " + failed[0].detail,
            where=f"pack {number}",
        )

    def _open(self, number: int) -> tuple[list[Encoded], list[Dropped]]:
        opened = [
            self.samples.encode(index, counted=int(self.table.tokens[index]))
            for index in self.plan.pack(number).tolist()
        ]
        return (
            [sample for sample in opened if isinstance(sample, Encoded)],
            [sample for sample in opened if isinstance(sample, Dropped)],
        )

    def _replacement(self, number: int, attempt: int) -> int:
        """Another pack: a function of (seed, epoch, number, attempt) and nothing else."""
        random = np.random.default_rng([self.plan.seed, self.plan.epoch, number, attempt])
        return int(random.integers(len(self.plan)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Collater:
    """Packs → batch, as the configuration says."""

    samples: Samples
    config: LoaderConfig

    def __call__(self, packs: Sequence[Pack]) -> Batch:
        """One batch of these packs."""
        packs = self._with_placeholder(packs)
        longest = max(pack.length for pack in packs)
        border = self.samples.border
        return collate_packs(
            packs,
            fields=border.family.table,
            pad_token=border.pad_token,
            length=max(longest, self.config.pack_size) if self.config.fixed_length else None,
            attention=self.config.attention,
        )

    def _with_placeholder(self, packs: Sequence[Pack]) -> Sequence[Pack]:
        bare = not any(document.media for pack in packs for document in pack.documents)
        if not (self.config.placeholder_media and bare):
            return packs
        border = self.samples.border
        silent = append_untrained(
            packs[-1],
            self.samples.encode_conversation(placeholder.conversation()),
            fields=border.family.table,
            three_way=border.three_way,
        )
        return [*packs[:-1], silent]
