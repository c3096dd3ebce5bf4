"""`nemo_automodel.components.datasets.vlm.neat_packing_vlm`, under its names: plan at once, materialise in workers.

    packed = neat_pack_dataset_vlm(PreTokenizedDatasetWrapper(examples, processor), pack_size=8192)
    packed.set_epoch(epoch)                                    # on every rank; also where workers live on
    loader = DataLoader(packed, sampler=DistributedSampler(packed, shuffle=False), collate_fn=neat_packed_vlm_collater)

**Balance.** Packs are sorted by media tokens, and `set_epoch` shuffles them in blocks of as many as there are ranks. A
sampler that does not shuffle deals such a block to the ranks of one step; one that shuffles would undo the balance.

**Nothing lost.** Without `ds_raw`, lengths are counted exactly, and every pack holds what was planned. With it they are
estimated, at once. A sample that then turns out not to fit is named in the log and in the ledger, its pack is built
without it, and `packed.carry()` gives the packs of all such samples, to be trained on when the epoch's own are done.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, Final

import numpy as np
import torch
import torch.distributed as distributed
from numpy.typing import NDArray

from lading.errors import ConfigError, Reason, SkipSample
from lading.ledger import Ledger, too_long
from lading.records import Dropped, SampleKey
from lading.vlm.estimate import Estimate, estimate
from lading.vlm.estimate import image_tokens as _estimate_image_tokens
from lading.vlm.estimate import video_tokens as _estimate_video_tokens
from lading.vlm.packed_samples import MEDIA_FIELDS, PackLog, Sample, ShiftedSamples
from lading.vlm.packed_samples import join_samples as _build_packed_vlm_sample
from lading.vlm.packed_samples import rope_positions as _compute_mrope_position_ids
from lading.vlm.packed_samples import shift_sample as _shift_sample
from lading.vlm.padded_batches import PackInputs
from lading.vlm.planning import (
    Cost,
    block_order,
    count_exactly,
    described,
    exact_costs,
    greedy_knapsack_vt_balanced,
    name_of,
    plan_bins,
)
from lading.vlm.replacement import Replacing
from lading.vlm.samplers import LengthGroupedSampler

__all__ = [
    "MEDIA_KEYS",
    "PackedDatasetWrapper",
    "_build_packed_vlm_sample",
    "_compute_mrope_position_ids",
    "_estimate_image_tokens",
    "_estimate_sample_length",
    "_estimate_video_tokens",
    "_shift_sample",
    "greedy_knapsack_vt_balanced",
    "neat_pack_dataset_vlm",
]

logger = logging.getLogger(__name__)

MEDIA_KEYS: Final = tuple(
    dict.fromkeys(("pixel_values", "image_grid_thw", "image_position_ids", "pixel_values_videos", *MEDIA_FIELDS))
)
"""Every media input of every family: what may stand in a sample beside its tokens. The first are the page's."""


def _estimate_sample_length(
    example: dict[str, Any],
    image_cfg: dict[str, Any] | None = None,
    video_cfg: dict[str, Any] | None = None,
    return_media_tokens: bool = False,
) -> int | tuple[int, int]:
    """Tokens of an example, or (tokens, media tokens). `lading.vlm.estimate` says what it may carry for this.

    >>> _estimate_sample_length({"conversation": [{"role": "user", "content": [{"type": "image"}]}]})
    500
    """
    found = _estimate(example, image_cfg, video_cfg)
    return (found.total, found.media) if return_media_tokens else found.total


def _estimate(example: dict[str, Any], image_cfg: dict[str, Any] | None, video_cfg: dict[str, Any] | None) -> Estimate:
    return estimate(
        example,
        image_tokens=partial(_estimate_image_tokens, image_cfg=image_cfg) if image_cfg else None,
        video_tokens=partial(_estimate_video_tokens, video_cfg=video_cfg) if video_cfg else None,
    )


class PackedDatasetWrapper(Replacing):
    """Packs, built when they are asked for: dictionaries of `input_ids`, `labels`, `attention_mask`, `position_ids` and
    media, at most `pack_size` tokens long; `bins` are the samples of each.

    `inner_dataset` gives samples by number: `input_ids`, `labels` (unshifted) and `attention_mask` [T], and media. One
    that fails is replaced by a rule of (seed, epoch, index, attempt); one without room in its pack is left over, by
    name; a pack without any sample is replaced by another pack. `account()` has all of it by name, in the `ledger`, if
    one is given, whose samples the inner data set names. `left_out` are samples that the plan gave up.
    """

    def __init__(
        self,
        inner_dataset: Any,
        bins: list[list[int]],
        pack_size: int,
        padding_idx: int = 0,
        get_rope_index: Callable[..., Any] | None = None,
        max_retries: int = 10,
        seed: int = 0,
        ledger: Ledger | None = None,
        left_out: Sequence[Dropped] = (),
    ) -> None:
        self.samples = ShiftedSamples(inner_dataset, get_rope_index, max_retries=max_retries, seed=seed, ledger=ledger)
        if pack_size < 1:
            raise ConfigError(found=f"pack_size {pack_size}", wanted="a positive number of tokens", where="packing")
        for number, members in enumerate(bins):
            if not len(members) or not 0 <= min(members) <= max(members) < len(self.samples):
                raise ConfigError(
                    found=f"bin {number} of samples {list(members)[:10]}",
                    wanted=f"at least one, and numbers from 0 to {len(self.samples) - 1}",
                    where="packing",
                )
        super().__init__(bins, max_retries=max_retries, seed=seed, ledger=None)
        self.inner_dataset, self.bins, self.pack_size, self.padding_idx = inner_dataset, bins, pack_size, padding_idx
        self.get_rope_index, self.has_mrope = get_rope_index, get_rope_index is not None
        self.left_out = tuple(left_out)
        self.log = PackLog(self.samples.log, self._keys)
        # Shared with workers, as the epoch is. 0: the order in which the bins were given.
        self._world_size = torch.zeros(1, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]  # torch left it untyped
        self._note_left_out()

    def fetch(self, index: int) -> PackInputs:
        """Build one pack of the samples that fit; `SkipSample` where none does."""
        parts: list[Sample] = []
        room = self.pack_size
        for place in self._members(index):
            sample, used = self.samples.obtain(place)
            tokens = len(sample["input_ids"])
            if tokens <= room:
                parts.append(sample)
                room -= tokens
                continue
            detail = f"found {tokens} tokens of sample {used}; wanted at most {room}, the room left"
            entry = Dropped(key=self.samples.key(place), reason=Reason.TOO_LONG, detail=detail)
            logger.warning("left over %s: %s", entry.key, detail)
            self.samples.log.write(entry)
        if not parts:
            raise SkipSample(Reason.TOO_LONG, found="no sample that fits into a pack", where=self.key(index).where)
        family = self.samples.facts.family if self.samples.facts else None
        fields = family.table if family else None
        pack = PackInputs(
            _build_packed_vlm_sample(parts, self.pack_size, self.padding_idx, self.samples.three_way, fields)
        )
        pack.family = family.name if family else None
        return pack

    def key(self, place: int) -> SampleKey:
        """The name of a pack."""
        return SampleKey(index=place, source="pack", where=f"pack of samples {list(self._members(place))}")

    def set_epoch(self, epoch: int, ledger: Ledger | None = None, *, world_size: int | None = None) -> None:
        """Shuffle for an epoch, in blocks of `world_size` packs: by default, of as many as there are ranks."""
        if world_size is None:
            running = distributed.is_available() and distributed.is_initialized()
            world_size = distributed.get_world_size() if running else 1
        block_order(0, world_size=world_size, seed=self.seed, epoch=epoch)  # refuses impossible numbers
        self._world_size.fill_(world_size)
        self._epoch.fill_(epoch)
        self.samples.set_epoch(epoch, ledger)
        self._note_left_out()

    def account(self, handed: Iterable[int] = ()) -> Ledger:
        """The ledger of the samples; `handed` are the packs that a sampler gave out."""
        return self.samples.log.settle(key.index for pack in handed for key in self._keys(pack))

    def carry(self) -> PackedDatasetWrapper | None:
        """Packs of the samples that this epoch's packs had no room for, by their true lengths; `None` without any.

        Call it, in the process that made this wrapper, when the epoch's packs are done and accounted for.
        """
        names = {self.samples.key(place).index: place for members in self.bins for place in members}
        indices = {
            entry["index"]
            for entry in self.account().entries()
            if entry["reason"] == Reason.TOO_LONG and entry["fate"] == "dropped"
        }
        places = [place for index, place in names.items() if index in indices]
        lengths = [len(self.samples.obtain(place)[0]["input_ids"]) for place in places]
        fitting = [(place, length) for place, length in zip(places, lengths, strict=True) if length <= self.pack_size]
        if not fitting:
            return None
        bins = greedy_knapsack_vt_balanced([length for _, length in fitting], self.pack_size, [0] * len(fitting))
        return PackedDatasetWrapper(
            self.inner_dataset,
            [[fitting[at][0] for at in members] for members in bins],
            self.pack_size,
            self.padding_idx,
            self.get_rope_index,
            self.max_retries,
            self.seed,
            None if self.samples.by_place else self.samples.log.ledger,
        )

    def _members(self, place: int) -> Sequence[int]:
        world_size = int(self._world_size)
        if not world_size:
            return self.bins[place]
        return self.bins[int(_order(len(self.bins), world_size, self.seed, self.epoch)[place])]

    def _keys(self, place: int) -> list[SampleKey]:
        return [self.samples.key(sample) for sample in self._members(place)]

    def _note_left_out(self) -> None:
        for entry in self.left_out:
            self.samples.log.write(replace(entry, key=self.samples.key(entry.key.index)))


@lru_cache(maxsize=4)
def _order(packs: int, world_size: int, seed: int, epoch: int) -> NDArray[np.int64]:
    return block_order(packs, world_size=world_size, seed=seed, epoch=epoch)


def neat_pack_dataset_vlm(
    dataset: Any,
    pack_size: int,
    padding_idx: int = 0,
    drop_long_samples: bool = False,
    max_packs: int | None = None,
    get_rope_index: Callable[..., Any] | None = None,
    ds_raw: Any = None,
    packing_ratio: float = 1.0,
    processor: Any = None,
    balance_media_tokens: bool = True,
    exact_lengths: bool | None = None,
    seed: int = 0,
    ledger: Ledger | None = None,
) -> PackedDatasetWrapper:
    """Plan packs for a data set of samples, and return them unbuilt.

    Lengths are estimated from `ds_raw`, at once; where it is not given, or with `exact_lengths=True`, they are counted
    from text and headers. A sample over `pack_size` is left out by name with `drop_long_samples`; without, one that was
    counted is an error, and one that was estimated gets a pack to itself, because it may be shorter than it seems.
    """
    costs = _costs(dataset, ds_raw, processor, exact_lengths)
    if len(costs) != len(dataset) or not costs:
        raise ConfigError(found=f"{len(costs)} lengths for {len(dataset)} samples", wanted="one each, and at least one")
    lengths = [0 if isinstance(cost, Dropped) else cost.shifted for cost in costs]
    # An estimate may be too high: only samples that are known to fit into no pack are refused.
    counted = [cost.shifted if isinstance(cost, Cost) and cost.exact else 0 for cost in costs]
    long = [f"{place} ({tokens})" for place, tokens in enumerate(counted) if tokens > pack_size]
    if long and not drop_long_samples:
        raise ConfigError(
            found=f"{len(long)} samples longer than a pack: {', '.join(long[:10])}",
            wanted=f"at most {pack_size} tokens (pack_size)",
            consequence="drop_long_samples=True leaves them out by name",
        )
    media = [0 if isinstance(cost, Dropped) else cost.media for cost in costs]
    plan = plan_bins(
        lengths,
        media,
        pack_size=pack_size,
        ratio=packing_ratio,
        max_packs=max_packs,
        drop_long=drop_long_samples,
        balance=balance_media_tokens,
    )
    left_out = [cost for cost in costs if isinstance(cost, Dropped)]
    left_out += [too_long(name_of(dataset, place), lengths[place], pack_size) for place in plan.too_long]
    detail = f"found no room in the first {max_packs} packs (max_packs)"
    left_out += [
        Dropped(key=name_of(dataset, place), reason=Reason.BEYOND_MAX_PACKS, detail=detail) for place in plan.beyond
    ]
    for line in described(left_out, len(costs)):
        logger.warning("%s", line)
    return PackedDatasetWrapper(
        dataset, plan.bins, pack_size, padding_idx, get_rope_index, seed=seed, ledger=ledger, left_out=left_out
    )


def _costs(dataset: Any, ds_raw: Any, processor: Any, exact: bool | None) -> Sequence[Cost | Dropped]:
    examples = LengthGroupedSampler._get_raw_samples(dataset if ds_raw is None else ds_raw)
    if exact:
        return count_exactly(dataset, examples, processor)
    if exact is None and ds_raw is None and (counted := exact_costs(dataset)) is not None:
        return counted
    image_cfg = LengthGroupedSampler._extract_image_config(processor)
    video_cfg = LengthGroupedSampler._extract_video_config(processor)
    costs = [_quick_cost(dict(examples[place]), image_cfg, video_cfg) for place in range(len(examples))]
    if exact is None and ds_raw is None and not all(cost.exact for cost in costs):
        logger.warning(
            "lengths of a %s are estimated, so that some samples may find no room in their packs; a "
            "PreTokenizedDatasetWrapper knows them, and exact_lengths=True with a processor counts them",
            type(dataset).__name__,
        )
    return costs


def _quick_cost(example: dict[str, Any], image_cfg: dict[str, Any] | None, video_cfg: dict[str, Any] | None) -> Cost:
    """An estimate; of an example that is tokenised already, its length after the shift."""
    if "input_ids" in example:
        return Cost(tokens=len(example["input_ids"]), media=0, shifted=len(_shift_sample(example)["input_ids"]))
    found = _estimate(example, image_cfg, video_cfg)
    # The token that the shift drops is left in: an estimate is too low rather than too high.
    return Cost(tokens=found.total, media=found.media, shifted=max(1, found.total), exact=False)
