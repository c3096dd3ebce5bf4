"""Pack number → pack, in a worker; packs → batch, in the same worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch.utils.data import Dataset

from lading.errors import LadingError, TooManyFailures
from lading.family import LayerSight
from lading.loader.config import LoaderConfig
from lading.media.normalise import normalised, scaled_when_read
from lading.microbatch import PipelineBatch
from lading.packing import append_untrained, build_pack, collate_packs, empty_pack, without_labels
from lading.records import Batch, Dropped, Encoded, LengthTable, Pack, PackPlan
from lading.samples.samples import Samples

MAX_ATTEMPTS = 10


class PackDataset(Dataset[Pack | LadingError]):
    """The packs of a plan. A pack whose documents all fail is replaced by another, named, never left out of step.

    Numbers from `len(plan)` up are the same packs without labels. With `validation`, whatever replaces another pack has
    none either: it counts where it stands by itself.

    An error of ours is given back, not raised: torch would rebuild it from its text on the way out of a worker, as an
    error of its own.
    """

    def __init__(self, samples: Samples, table: LengthTable, plan: PackPlan, *, validation: bool = False) -> None:
        self.samples, self.table, self.plan = samples.in_bytes(), table, plan
        self._validation = validation

    def __len__(self) -> int:
        return len(self.plan)

    def __getitem__(self, number: int) -> Pack | LadingError:
        try:
            return self._build(number)
        except LadingError as error:
            return error

    def _build(self, number: int) -> Pack:
        fills, number = divmod(number, len(self.plan))
        good, failed = self._open(number)
        attempt = 0
        while not good:
            attempt += 1
            if attempt > MAX_ATTEMPTS or len(self.plan) < 2:
                raise TooManyFailures(
                    found=f"no readable document in a pack, nor in {attempt - 1} others",
                    wanted="documents that were counted to stay readable",
                    consequence="first cause: " + failed[0].detail,
                    where=f"pack {number}",
                )
            good, _ = self._open(self._replacement(number, attempt))
        if attempt and not self._validation:
            keys = tuple(sample.document.key for sample in good)
            failed = [replace(entry, by=keys) for entry in failed]
        facts = self.samples.facts
        dropped = () if fills else failed  # of a pack that fills the last step, they are reported where it counts
        pack = build_pack(good, fields=facts.family.table, three_way=facts.three_way, number=number, dropped=dropped)
        return without_labels(pack) if fills or (attempt and self._validation) else pack

    def _open(self, number: int) -> tuple[list[Encoded], list[Dropped]]:
        members = self.plan.pack(number)
        opened = self.samples.encode_all(members.tolist(), counted=self.table.tokens[members].tolist())
        return (
            [sample for sample in opened if isinstance(sample, Encoded)],
            [sample for sample in opened if isinstance(sample, Dropped)],
        )

    def _replacement(self, number: int, attempt: int) -> int:
        """Another pack: a function of (seed, epoch, number, attempt) and nothing else."""
        random = np.random.default_rng([self.plan.seed, self.plan.epoch, number, attempt])
        return (number + 1 + int(random.integers(len(self.plan) - 1))) % len(self.plan)


@dataclass(frozen=True, kw_only=True, slots=True)
class Collater:
    """Packs → batch, as the configuration says."""

    samples: Samples
    config: LoaderConfig
    layers: Mapping[str, LayerSight] | None = None
    placeholder: Encoded | None = None
    """What stands behind the last pack of a batch without pictures and clips; the plan leaves space for it."""

    def __call__(self, packs: Sequence[Pack | LadingError]) -> Batch | LadingError:
        """One batch of these packs, or the error that came instead of one."""
        good = [pack for pack in packs if isinstance(pack, Pack)]
        for pack in packs:
            if isinstance(pack, LadingError):
                return pack
        facts, pieces = self.samples.facts, self.config.microbatches
        batch = collate_packs(
            self._for_pipeline(good) if pieces else self._with_placeholder(good),
            fields=facts.family.table,
            pad_token=facts.pad_token,
            length=self.config.pack_size if self.config.fixed_length or pieces else None,
            attention=self.config.attention,
            layers=self.layers,
        )
        # Once for the whole batch, when nothing is left to be joined: where it is used, or here in the worker.
        if facts.raw is not None and self.config.pixels == "auto":
            batch = scaled_when_read(batch, facts.raw.scales)
        elif facts.raw is not None and self.config.pixels == "model":
            batch = replace(batch, inputs=normalised(batch.inputs, facts.raw.scales))
        return PipelineBatch.of(batch, pieces) if pieces else batch

    def _for_pipeline(self, packs: list[Pack]) -> list[Pack]:
        """As many rows in every batch, and a placeholder in each microbatch, since the vision tower runs for each."""
        missing = self.config.batch_size - len(packs)
        filled = packs + [empty_pack(packs[0], fields=self.samples.facts.family.table)] * missing
        rows = self.config.batch_size // self.config.microbatches
        own = (filled[start : start + rows] for start in range(0, len(filled), rows))
        return [pack for group in own for pack in self._with_placeholder(group)]

    def _with_placeholder(self, packs: list[Pack]) -> list[Pack]:
        # A sound is no picture: the vision tower would stand still.
        bare = not any(document.footprints("image", "video") for pack in packs for document in pack.documents)
        if self.placeholder is None or not bare:
            return packs
        facts = self.samples.facts
        with_placeholder = append_untrained(
            packs[-1], self.placeholder, fields=facts.family.table, three_way=facts.three_way
        )
        return [*packs[:-1], with_placeholder]
