"""The class a training loop iterates over."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import DataLoader

from lading.encode.encoder import Encoder
from lading.encode.processor_facts import read_layers
from lading.errors import ConfigError, CorpusError, LadingError, TooManyFailures
from lading.ledger import Ledger
from lading.lengths.count import count_lengths
from lading.lengths.fingerprint import Fingerprints
from lading.lengths.lost_sources import lost_sources
from lading.loader.config import LoaderConfig
from lading.loader.epoch import Epoch, merged_ledger
from lading.loader.packs import Collater, PackDataset
from lading.loader.planning import Planning, check_plan
from lading.loader.ranks import Agreement, find_ranks
from lading.loader.state import Cursor
from lading.media.normalise import PixelNormaliser
from lading.plan import PlanStats, plan_stats
from lading.plan.assign_workers import assign_workers, decoding_costs
from lading.plan.file import load_plan
from lading.progress import Advance, default_watcher, watched_by
from lading.records import Batch, PackPlan, Work
from lading.samples.samples import Samples, opened
from lading.samples.skip import SkipPolicy, WorkerWatch
from lading.workers.prefetch import Prefetcher, free_decoders

logger = logging.getLogger(__name__)


class Loader:
    """Balanced, packed batches of a corpus for one model family.

    - `corpus`: The data: the path of a meta file, of a `.jsonl`, `.json` or `.parquet` file or of a data set's
      folder, an open `datasets.Dataset`, or a `Corpus`.
    - `processor`: The model's transformers processor (`AutoProcessor`), its folder or hub id, or `toy:NAME`; image
      resolution (`min_pixels`, `max_pixels`), fps and the chat template are its own.
    - `format`: How the rows are written (`sharegpt`, `llava`, `openai`, `trl`, …), where their first ones and the
      meta file do not show it.
    - `media_dir`: The folder against which relative paths of images, videos and sounds are resolved, whatever the
      meta file says.
    - `media_roots`: Folders below which every media file must lie, links followed, for data of strangers; without
      them, a row may name any local file.
    - `family`: The name of the model family (`qwen3_vl`), where the class of the processor does not tell it.
    - `model_config`: The model's configuration (`model.config`), which `attention="mask"` and `"varlen"` need for
      models whose layers have sliding windows (Gemma, Step).
    - `plan`: A plan file that `lading plan --out` wrote, whose epoch is then not planned again.
    - `work`: What the model computes for tokens, attention and patches, for the balance among ranks, where its
      shape is far from its family's usual one.
    - `mesh`: torch's `DeviceMesh` that the model is parallelised by; only its data dimensions (`dp`, `fsdp`, …) get
      different data, ranks along the others (`tp`, `pp`, `cp`, …) get the same.
    - `group`: The process group whose ranks get a share of the data each, where it is not the default one.
    - `data_dims`: The names of the mesh's data dimensions, where they are not the usual ones.
    - `progress`: Whether work of more than two seconds shows a progress bar, on a terminal and on rank 0; a
      function is told how many further samples were counted, instead.

    All other options are those of `LoaderConfig`. Counting happens here, planning at the start of every epoch; media
    are opened by the workers.

        loader = Loader("corpus/meta.json", processor, pack_size=4096, num_workers=8)
        for batch in loader:
            loss = model(**batch.to("cuda")).loss

    Every full pass is an epoch of its own, with its own order and ledger; a pass that was broken off is gone on with by
    the next one, and `set_epoch` chooses an epoch and begins it. With `validation=True` every pass is the same. A
    ledger knows the samples of its rank; `merged_ledger()` brings those of all together.

    Each rank of the process group gets a share of its own. Where ranks hold parts of one model (tensor, pipeline or
    context parallel), `mesh` (torch's `DeviceMesh`) or `group` says which get the same: `lading.loader.ranks`.
    """

    def __init__(
        self,
        corpus: Any,
        processor: Any,
        *,
        format: str | None = None,  # noqa: A002 - what users call it
        media_dir: str | Path | None = None,
        media_roots: Sequence[str | Path] | None = None,
        family: str | None = None,
        model_config: Any = None,
        plan: str | Path | None = None,
        work: Work | None = None,
        mesh: Any = None,
        group: Any = None,
        data_dims: Sequence[str] | None = None,
        progress: bool | Advance = True,
        **options: Any,
    ) -> None:
        share = {name: options.pop(name, None) for name in ("rank", "world_size")}
        self._ranks = find_ranks(**share, mesh=mesh, group=group, data_dims=data_dims)
        self.config = LoaderConfig.of(rank=self._ranks.rank, world_size=self._ranks.world_size, **options)
        self._watcher = default_watcher(wanted=progress is True, rank=self._ranks.process)
        advance = progress if callable(progress) else None
        with watched_by(self._watcher):
            self.samples = Samples(
                corpus=opened(corpus, self.config.cache, format, media_dir, media_roots),
                encoder=Encoder.of(
                    processor,
                    family,
                    tokenizer=self.config.tokenizer,
                    template_options=self.config.template_options,
                    pixels=self.config.pixels,
                    draft=self.config.draft,
                    loss_weights=self.config.loss_weights,
                ),
                policy=SkipPolicy(strict=self.config.strict, decode_seconds=self.config.decode_seconds),
                reading=self.config.reading,
            )
            self._layers = read_layers(self.samples.facts.family, model_config, self.config.attention)
            counted = count_lengths(self.samples, advance, workers=self.config.count_workers, cache=self.config.cache)
            for line in lost_sources(self.samples, counted) if self.config.rank == 0 else ():
                logger.warning("nothing to train on in %s", line)
            self._planning = Planning.of(self.samples, counted, self.config, work)
            self.samples, self.lengths = self._planning.samples, self._planning.lengths
        self._given = None if plan is None else check_plan(load_plan(plan, check=True), self.config, self._planning)
        self._latest = self._given
        self._fingerprints = Fingerprints(self.samples.corpus, self.samples.layouts)
        self._agreement, self._passes, self._warned = Agreement(self._ranks), 0, False
        self._carries_on = False
        self._begin(self.config.epoch)
        self._refuse_empty_plan()

    @property
    def plan(self) -> PackPlan:
        """Which samples share a pack in this epoch, and who gets it when."""
        return self._epoch.plan

    @property
    def ledger(self) -> Ledger:
        """What became of each sample in this epoch, as far as this rank knows."""
        return self._epoch.ledger

    def merged_ledger(self) -> Ledger:
        """What became of each sample, over all ranks. Every process of the group must call it (with a mesh of several
        dimensions: every process there is).
        """
        return merged_ledger(self.ledger, self._ranks)

    @property
    def stats(self) -> PlanStats:
        """How good the plan is."""
        return plan_stats(self.plan, self.lengths)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch of the next pass. Said of the epoch a loaded cursor points into, it changes nothing."""
        if not (self._carries_on and epoch == self.config.epoch):
            self._begin(epoch)

    @cached_property
    def normalise(self) -> PixelNormaliser:
        """Turns the bytes of a batch into what the model expects, on its device: `loader.normalise(batch.to("cuda"))`.

        With `pixels="model"` it finds no bytes, and changes nothing.
        """
        raw = self.samples.facts.raw
        return PixelNormaliser(raw.scales if raw is not None else {})

    def __len__(self) -> int:
        """Batches in an epoch, the same on every rank; after it was carried on with other ranks, those since then."""
        return math.ceil(len(self._epoch.order) / self.config.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        """The batches of an epoch, for this rank; behind a cursor that was loaded, or a pass that was broken off, those
        that are left of it.
        """
        self._begin_or_go_on()
        self._carries_on = False
        self._passes += 1
        return self._pass(self._passes)

    def _pass(self, number: int) -> Iterator[Batch]:
        for batch in self._batches():
            if isinstance(batch, LadingError):
                raise batch
            self._epoch.account(batch)
            self._refuse_failures()
            yield batch
            if number != self._passes:
                raise ConfigError(
                    found="a pass over a loader that another pass, set_epoch or load_state_dict came after",
                    wanted="the newest one, iter(loader)",
                    consequence="its batches would be counted as those of the other",
                    where="Loader",
                )

    def _begin_or_go_on(self) -> None:
        """Where the pass begins; with a word where that may surprise whoever begins it."""
        if self._carries_on:
            if self._is_over():
                logger.warning("%s", self._epoch.nothing_left())
        elif self.config.validation:
            self._begin(self.config.epoch)
        elif self._is_over():
            self._begin(self.config.epoch + 1)
        elif self._epoch.step and not self._warned:
            self._warned = True
            logger.warning("%s", self._epoch.broken_off())

    def steps(self, *, epochs: int, accumulate: int = 1) -> Iterator[list[Batch]]:
        """The batches of each step of the optimiser, `accumulate` of them, until so many epochs are over.

        A step at the end of an epoch has those that are left, on every rank as many. After a cursor was loaded, the
        steps that are left. A cursor taken within the loop counts the step in hand as done.

            for batches in loader.steps(epochs=3, accumulate=4):
                labels = sum(batch.label_tokens for batch in batches)
        """
        if accumulate < 1:
            raise ConfigError(found=f"accumulate {accumulate}", wanted="1 or more batches in a step", where="steps")
        if self.config.validation:
            raise ConfigError(found="validation=True", wanted="a plain loop: epochs have no end here", where="steps")
        while self.config.epoch + self._is_over() < epochs:
            if self._is_over():
                self.set_epoch(self.config.epoch + 1)
            batches = iter(self)
            while step := list(islice(batches, accumulate)):
                yield step

    @property
    def resumes_at(self) -> int:
        """Batches of its epoch that the next pass begins behind: those before a loaded cursor, else none."""
        return math.ceil(self._epoch.step / self.config.batch_size) if self._carries_on else 0

    def state_dict(self) -> dict[str, Any]:
        """The cursor: load it into a loader of the same corpus and configuration to carry on with the next batch.

        Any rank's will do for all, whatever their number; only what failed to open is known to its own rank alone.
        """
        return self._epoch.cursor().to_dict()

    def load_state_dict(self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> None:
        """Carry on where a cursor points, with any number of ranks and workers. Nothing is read to get there.

        Given the states of all ranks, the ledger also knows what failed on the others.
        """
        cursor = Cursor.from_dict(state)
        plan = self._plan(cursor.epoch)
        cursor.check(Cursor.of(plan, self._fingerprints.by_source))
        self._stand(self._epoch_of(plan, cursor), carries_on=True)

    def parts(self) -> dict[str, Any]:
        """What a `DataLoader` of one's own is made of, torchdata's `StatefulDataLoader` for one: the rest of the epoch.

            StatefulDataLoader(**loader.parts(), num_workers=8)

        The ledger and the cursor of this object do not see what such a loader hands out.
        """
        return {
            "dataset": self._dataset(self.samples),
            "batch_sampler": self._batches_left(),
            "collate_fn": Collater(
                samples=self.samples,
                config=self.config,
                layers=self._layers,
                placeholder=self._planning.placeholder,
            ),
        }

    def _dataset(self, samples: Samples) -> PackDataset:
        return PackDataset(samples, self.lengths, self.plan, validation=self.config.validation)

    def _is_over(self) -> bool:
        return self._epoch.step >= len(self._epoch.order)

    def _batches_left(self) -> list[list[int]]:
        own, size = self._epoch.left(), self.config.batch_size
        return [own[start : start + size] for start in range(0, len(own), size)]

    def _batches(self) -> Prefetcher[Batch | LadingError]:
        """What is left of the epoch, made by the workers."""
        batches, workers = self._batches_left(), self.config.num_workers
        costs = decoding_costs(self.lengths, self.plan)
        works = [costs[np.array(numbers) % len(costs)].sum() for numbers in batches]
        assigned = assign_workers(works, max(1, workers))
        if workers:
            free_decoders()
        parts = self.parts()
        watches = [WorkerWatch(self.config.decode_seconds) for _ in range(workers)]

        def open_loader(worker: int, share: list[list[int]]) -> DataLoader[Batch | LadingError]:
            policy = replace(self.samples.policy, watch=watches[worker] if workers else None)
            dataset = self._dataset(replace(self.samples, policy=policy))
            own = {"dataset": dataset, "batch_sampler": share, "num_workers": min(1, workers)}
            # Its own generator: the global one must not depend on how often a run was interrupted.
            generator = torch.Generator().manual_seed(self.config.seed + worker)
            return DataLoader(**{**parts, **own}, generator=generator)

        return Prefetcher(open_loader, batches, assigned, lambda worker, process: watches[worker].end_if_late(process))

    def _plan(self, epoch: int) -> PackPlan:
        """The plan of an epoch: the one that was given, the one made last, or a new one."""
        for known in (self._given, self._latest):
            if known is not None and known.epoch == epoch:
                return known
        with watched_by(self._watcher):
            self._latest = self._planning.plan(self.config, epoch)
        return self._latest

    def _epoch_of(self, plan: PackPlan, cursor: Cursor | None = None) -> Epoch:
        return Epoch(
            plan,
            samples=self.samples,
            lengths=self.lengths,
            config=replace(self.config, epoch=plan.epoch),
            fingerprints=self._fingerprints,
            cursor=cursor,
        )

    def _begin(self, epoch: int) -> None:
        """An epoch at its first step, with an empty ledger."""
        self._stand(self._epoch_of(self._plan(epoch)), carries_on=False)

    def _stand(self, epoch: Epoch, *, carries_on: bool) -> None:
        self._epoch, self.config, self._carries_on = epoch, epoch.config, carries_on
        self._passes += 1
        self._agreement.on(epoch.plan)

    def _refuse_failures(self) -> None:
        failed = self._epoch.failed
        if len(failed) > self.config.max_failures:
            raise TooManyFailures(
                found=f"{len(failed)} samples that were counted but could not be opened",
                wanted=f"at most {self.config.max_failures} (max_failures)",
                consequence=f"the last one: {failed[-1].detail}",
            )

    def _refuse_empty_plan(self) -> None:
        if not len(self._epoch.order):
            reasons = ", ".join(f"{reason} {count}" for reason, count in self.ledger.total()["reasons"].items())
            raise CorpusError(
                found=f"nothing to train on among {len(self.samples)} samples" + (f" ({reasons})" if reasons else ""),
                wanted="at least one",
            )
