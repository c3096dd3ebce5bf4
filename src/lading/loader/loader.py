"""The class a training loop iterates over."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.utils.data import DataLoader

from lading.errors import ConfigError, SkipSample, TooManyFailures
from lading.ledger import Ledger, too_long
from lading.loader.border import load_processor, read_processor
from lading.loader.config import LoaderConfig
from lading.loader.packs import Collater, PackDataset
from lading.loader.ranks import this_rank
from lading.loader.samples import Samples
from lading.loader.skip import SkipPolicy
from lading.loader.state import Cursor, fingerprint
from lading.plan import PlanStats, make_plan, plan_stats
from lading.records import Batch
from lading.sources import Corpus, open_corpus


class Loader:
    """Balanced, packed batches of a corpus for one model family.

    `corpus` is a meta file, a `.json` or a `.jsonl` file, or an opened `Corpus`; `processor` is a transformers
    processor, a folder, a hub id or `toy:NAME`. Options are those of `LoaderConfig`. Counting happens here, planning at
    the start of every epoch; media are opened by the workers.

        loader = Loader("corpus/meta.json", processor, pack_size=4096, num_workers=8)
        for batch in loader:
            loss = model(**batch.to("cuda")).loss
    """

    def __init__(
        self,
        corpus: str | Path | Corpus,
        processor: Any,
        *,
        family: str | None = None,
        progress: Callable[[int], None] = lambda done: None,
        **options: Any,
    ) -> None:
        rank, world_size = this_rank()
        self.config = LoaderConfig.of(**{"rank": rank, "world_size": world_size, **options})
        self.samples = Samples(
            corpus=corpus if isinstance(corpus, Corpus) else open_corpus(corpus),
            border=read_processor(load_processor(processor), family),
            policy=SkipPolicy(strict=self.config.strict),
        )
        self._refuse_impossible_attention()
        self.lengths = self.samples.count(progress)
        self._step = 0
        self.set_epoch(self.config.epoch)

    def _refuse_impossible_attention(self) -> None:
        family = self.samples.border.family
        if self.config.attention not in family.attentions:
            raise ConfigError(
                found=f"attention={self.config.attention!r} for {family.title}",
                wanted=" or ".join(repr(name) for name in family.attentions),
                consequence="its layers need masks of more than one kind, which it makes itself from positions",
            )

    def set_epoch(self, epoch: int) -> None:
        """Start another epoch: a new plan, an empty ledger, the first step."""
        self.config = replace(self.config, epoch=epoch)
        self.plan = make_plan(
            self.lengths,
            pack_size=self.config.pack_size,
            world_size=self.config.world_size,
            seed=self.config.seed,
            epoch=epoch,
            algorithm=self.config.algorithm,
        )
        self.ledger = Ledger.open(self.lengths)
        self._step = self._failures = 0
        for index in self.plan.too_long.tolist():
            entry = too_long(self.samples.corpus.key(index), int(self.lengths.tokens[index]), self.config.pack_size)
            if self.config.strict:
                raise SkipSample(entry.reason, found=entry.detail, where=entry.key.where)
            self.ledger.dropped(entry)

    @property
    def stats(self) -> PlanStats:
        """How good the plan is."""
        return plan_stats(self.plan, self.lengths)

    def __len__(self) -> int:
        """Batches in an epoch, the same on every rank."""
        return math.ceil(len(self.plan.order) / self.config.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """The batches that are left of this epoch, for this rank."""
        if self._step >= len(self):
            self.set_epoch(self.config.epoch)
        with _quiet_tokenizers():
            batches = iter(self._batches())
        for batch in batches:
            self._account(batch)
            self._step += 1
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The cursor: load it into a loader of the same corpus and configuration to carry on with the next batch."""
        return Cursor(epoch=self.config.epoch, step=self._step, plan=fingerprint(self.plan)).to_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Carry on where a cursor points. Nothing is read to get there."""
        cursor = Cursor.from_dict(state)
        self.set_epoch(cursor.epoch)
        if cursor.plan != fingerprint(self.plan):
            raise ConfigError(
                found=f"a cursor into plan {cursor.plan}",
                wanted=f"one into {fingerprint(self.plan)}, the plan of this corpus and configuration",
                consequence="samples would be skipped or repeated; nothing was loaded",
            )
        self._step = cursor.step

    def _batches(self) -> DataLoader[Batch]:
        dataset = PackDataset(self.samples, self.lengths, self.plan)
        return DataLoader(
            dataset,  # type: ignore[arg-type]  # torch types the loader by what the data set gives, not the collater
            batch_sampler=self._pack_numbers()[self._step :],
            collate_fn=Collater(samples=self.samples, config=self.config),
            num_workers=self.config.num_workers,
        )

    def _pack_numbers(self) -> list[list[int]]:
        """For each step, the packs of this rank."""
        mine = self.plan.order[:, self.config.rank].tolist()
        size = self.config.batch_size
        return [mine[start : start + size] for start in range(0, len(mine), size)]

    def _account(self, batch: Batch) -> None:
        self.ledger.trained(document.key.index for row in batch.rows for document in row)
        for dropped in batch.dropped:
            self.ledger.dropped(dropped)
        self._failures += len(batch.dropped)
        if self._failures > self.config.max_failures:
            raise TooManyFailures(
                found=f"{self._failures} samples that were counted but could not be opened",
                wanted=f"at most {self.config.max_failures} (max_failures)",
                consequence=f"the last one: {batch.dropped[-1].detail}",
            )


@contextmanager
def _quiet_tokenizers() -> Iterator[None]:
    """Workers are forked after the tokenizer used its threads here; told so, it does not warn about it in each."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
