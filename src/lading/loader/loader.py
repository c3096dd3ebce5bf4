"""The class a training loop iterates over."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from lading.errors import ConfigError, CorpusError, LadingError, TooManyFailures
from lading.loader.accounts import open_books
from lading.loader.border import load_processor, read_layers, read_processor
from lading.loader.config import LoaderConfig
from lading.loader.packs import Collater, PackDataset
from lading.loader.ranks import with_rank
from lading.loader.room import room_for_samples
from lading.loader.samples import Samples
from lading.loader.skip import SkipPolicy
from lading.loader.state import Cursor, fingerprint
from lading.loader.truncation import fit
from lading.media import placeholder
from lading.plan import PlanStats, make_plan, plan_stats
from lading.records import Batch, Dropped, PackPlan
from lading.sources import Corpus, open_corpus


class Loader:
    """Balanced, packed batches of a corpus for one model family.

    `corpus` is a meta file, a `.json` or a `.jsonl` file, or an opened `Corpus`; `processor` is a transformers
    processor, a folder, a hub id or `toy:NAME`. Options are those of `LoaderConfig`. Counting happens here, planning at
    the start of every epoch; media are opened by the workers. `attention="mask"` for a model whose layers see
    differently (Gemma, Step) needs its `model_config`.

        loader = Loader("corpus/meta.json", processor, pack_size=4096, num_workers=8)
        for batch in loader:
            loss = model(**batch.to("cuda")).loss

    Every full pass is an epoch of its own, with its own order and ledger; `set_epoch` chooses one. A ledger knows the
    samples of its rank; `ledger.merge` brings those of several together.
    """

    def __init__(
        self,
        corpus: str | Path | Corpus,
        processor: Any,
        *,
        family: str | None = None,
        model_config: Any = None,
        progress: Callable[[int], None] = lambda done: None,
        **options: Any,
    ) -> None:
        self.config = LoaderConfig.of(**with_rank(options))
        self.samples = Samples(
            corpus=corpus if isinstance(corpus, Corpus) else open_corpus(corpus),
            border=read_processor(load_processor(processor), family),
            policy=SkipPolicy(strict=self.config.strict),
        )
        self._layers = read_layers(self.samples.border.family, model_config, self.config.attention)
        self._silent = (
            self.samples.encode_conversation(placeholder.conversation()) if self.config.placeholder_media else None
        )
        counted = self.samples.count(progress)
        self._room = room_for_samples(
            counted,
            pack_size=self.config.pack_size,
            placeholder=self._silent.document.tokens if self._silent else 0,
            truncating=self.config.too_long == "truncate",
        )
        self.samples, self.lengths = fit(self.samples, counted, limit=self._room, too_long=self.config.too_long)
        self._step, self._carries_on = 0, False
        self._failed: list[Dropped] = []
        self._begin(self.config.epoch, self._plan(self.config.epoch))
        self._refuse_empty_plan()

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass. Said of the epoch a loaded cursor points into, it changes nothing."""
        if not (self._carries_on and epoch == self.config.epoch):
            self._begin(epoch, self._plan(epoch))

    @property
    def stats(self) -> PlanStats:
        """How good the plan is."""
        return plan_stats(self.plan, self.lengths)

    def __len__(self) -> int:
        """Batches in an epoch, the same on every rank."""
        return math.ceil(len(self.plan.order) / self.config.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of an epoch, for this rank; after a cursor was loaded, those that are left of it."""
        if self._carries_on:
            self._carries_on = False
        elif self._step >= len(self.plan.order):
            self.set_epoch(self.config.epoch + 1)
        else:
            self._begin(self.config.epoch, self.plan)
        with _quiet_tokenizers():
            batches = iter(self._batches())
        for batch in batches:
            if isinstance(batch, LadingError):
                raise batch
            self._account(batch)
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The cursor: load it into a loader of the same corpus and configuration to carry on with the next batch."""
        cursor = Cursor(
            epoch=self.config.epoch, step=self._step, plan=fingerprint(self.plan), dropped=tuple(self._failed)
        )
        return cursor.to_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Carry on where a cursor points. Nothing is read to get there."""
        cursor = Cursor.from_dict(state)
        plan = self._plan(cursor.epoch)
        if cursor.plan != fingerprint(plan) or not 0 <= cursor.step <= len(plan.order):
            raise ConfigError(
                found=f"a cursor to step {cursor.step} of plan {cursor.plan}",
                wanted=f"one into {fingerprint(plan)}, the plan of this corpus and configuration, of {len(plan.order)}",
                consequence="samples would be skipped or repeated; nothing was loaded",
            )
        self._begin(cursor.epoch, plan)
        self._carries_on, self._step, self._failed = True, cursor.step, list(cursor.dropped)
        for number in plan.order[: cursor.step, self.config.rank].tolist():
            self.ledger.trained(plan.pack(number).tolist())
        for dropped in cursor.dropped:
            self.ledger.dropped(dropped)

    def _plan(self, epoch: int) -> PackPlan:
        return make_plan(
            self.lengths,
            pack_size=self._room,
            world_size=self.config.world_size,
            seed=self.config.seed,
            epoch=epoch,
            algorithm=self.config.algorithm,
        )

    def _begin(self, epoch: int, plan: PackPlan) -> None:
        """An epoch at its first step, with an empty ledger."""
        self.config = replace(self.config, epoch=epoch)
        self.plan = plan
        self.ledger = open_books(self.samples, self.lengths, plan)
        self._step, self._carries_on = 0, False
        self._failed = []

    def _batches(self) -> DataLoader[Batch | LadingError]:
        own = self.plan.order[self._step :, self.config.rank].tolist()
        size = self.config.batch_size
        return DataLoader(
            PackDataset(self.samples, self.lengths, self.plan),  # type: ignore[arg-type]  # typed by what the data set gives, not the collater
            batch_sampler=[own[start : start + size] for start in range(0, len(own), size)],
            collate_fn=Collater(
                samples=self.samples,
                config=self.config,
                layers=self._layers,
                placeholder=self._silent,
            ),
            num_workers=self.config.num_workers,
            # Its own generator: the global one must not depend on how often a run was interrupted.
            generator=torch.Generator().manual_seed(self.config.seed),
        )

    def _account(self, batch: Batch) -> None:
        self._step = min(self._step + self.config.batch_size, len(self.plan.order))
        self.ledger.trained(document.key.index for row in batch.rows for document in row)
        for dropped in batch.dropped:
            self.ledger.dropped(dropped)
        self._failed += batch.dropped
        if len(self._failed) > self.config.max_failures:
            raise TooManyFailures(
                found=f"{len(self._failed)} samples that were counted but could not be opened",
                wanted=f"at most {self.config.max_failures} (max_failures)",
                consequence=f"the last one: {self._failed[-1].detail}",
            )

    def _refuse_empty_plan(self) -> None:
        if not len(self.plan):
            reasons = ", ".join(f"{reason} {count}" for reason, count in self.ledger.total()["reasons"].items())
            raise CorpusError(
                found=f"nothing to train on among {len(self.samples)} samples" + (f" ({reasons})" if reasons else ""),
                wanted="at least one",
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
