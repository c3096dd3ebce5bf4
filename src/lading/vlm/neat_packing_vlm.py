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
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from torch import Tensor

from lading import families
from lading.errors import ConfigError, Reason, UnknownName
from lading.family import ThreeWay
from lading.fields import SEQUENCE_FIELDS, Field, is_count
from lading.ledger import Ledger, too_long
from lading.packing.pack import document_positions
from lading.records import Dropped
from lading.vlm import estimate as guess
from lading.vlm.costs import Cost, described, exact_costs, name_of, quick_costs, refuse_long
from lading.vlm.media_order import alike_bins, plan_bins
from lading.vlm.packed_samples import PackedSamples, PackInputs, ShiftedSamples
from lading.vlm.sample_inputs import SampleInputs
from lading.vlm.samplers import LengthGroupedSampler, _smart_resize_image, _smart_resize_video, count_exactly
from lading.vlm.shifted import join_samples, rope_positions, shift_sample
from lading.vlm.tokenising import tokenising

logger = logging.getLogger(__name__)

_FIELDS: Final[Mapping[str, Field]] = {
    **families.OTHER_INPUTS,
    **{name: field for family in families.all_families() for name, field in family.fields.items()},
}
MEDIA_KEYS: Final = tuple(
    dict.fromkeys(("pixel_values", "image_grid_thw", "image_position_ids", "pixel_values_videos", *_FIELDS))
)
"""Every media input of every family: what may stand in a sample beside its tokens. The first are the page's."""


def _estimate_image_tokens(img_meta: Sequence[float], image_cfg: dict[str, Any]) -> int:
    """Tokens of a picture of [height, width]; `image_cfg` has the numbers of `lengths.estimate.IMAGE_NUMBERS`.

    >>> _estimate_image_tokens([56, 84], {"patch_size": 14, "merge_size": 2})
    6
    """
    return guess.image_tokens(img_meta, image_cfg, _smart_resize_image)


def _estimate_video_tokens(vid_meta: Sequence[float], video_cfg: dict[str, Any]) -> int:
    """Tokens of a clip of [total_frames, height, width, fps, duration]; see `lengths.estimate.VIDEO_NUMBERS`.

    >>> _estimate_video_tokens([60, 64, 96, 30.0, 2.0], {"fps": 1.0})
    12
    """
    return guess.video_tokens(vid_meta, video_cfg, _smart_resize_video)


def _estimate_sample_length(
    example: dict[str, Any],
    image_cfg: dict[str, Any] | None = None,
    video_cfg: dict[str, Any] | None = None,
    return_media_tokens: bool = False,
) -> int | tuple[int, int]:
    """Tokens of an example, or (tokens, media tokens). `lengths.estimate` says what it may carry for this.

    >>> _estimate_sample_length({"conversation": [{"role": "user", "content": [{"type": "image"}]}]})
    500
    """
    by_size = {
        "image_tokens": partial(_estimate_image_tokens, image_cfg=image_cfg) if image_cfg else None,
        "video_tokens": partial(_estimate_video_tokens, video_cfg=video_cfg) if video_cfg else None,
    }
    found = guess.estimate(example, **by_size)
    return (found.total, found.media) if return_media_tokens else found.total


def greedy_knapsack_vt_balanced(lengths: list[int], max_length: int, visual_tokens: list[int]) -> list[list[int]]:
    """First fit, longest first; then bins with like visual tokens beside each other, most first.

    >>> greedy_knapsack_vt_balanced([6, 5, 4, 3], 10, [0, 5, 0, 0])
    [[1, 3], [0, 2]]
    """
    return alike_bins(lengths, max_length, visual_tokens)


def _compute_mrope_position_ids(sample: dict[str, Any], get_rope_index: Callable[..., Any] | None) -> Tensor | None:
    """The positions [3, T] that a model gives the sample alone; `None` without tokens, or without a function to ask."""
    if get_rope_index is None or sample.get("input_ids") is None:
        return None
    return rope_positions(sample, get_rope_index)


def _shift_sample(sample: dict[str, Any], has_mrope: bool = False, media_tokens: Sequence[int] = ()) -> dict[str, Any]:
    """The sample without its last input token and its first label, so that place t predicts token t + 1.

    One that ends in a medium (see `materialise.shifted`) keeps that token; its last place then predicts nothing.

    >>> import torch
    >>> shifted = _shift_sample({"input_ids": torch.tensor([5, 6, 7]), "labels": torch.tensor([-100, 6, 7])})
    >>> shifted["input_ids"].tolist(), shifted["labels"].tolist(), shifted["attention_mask"].tolist()
    ([5, 6], [6, 7], [1, 1])
    """
    return shift_sample(sample, media_keys=MEDIA_KEYS, has_mrope=has_mrope, media_tokens=media_tokens)


def _build_packed_vlm_sample(
    samples: list[dict[str, Any]],
    pack_size: int,
    padding_idx: int,
    has_mrope: bool = False,
    fields: Mapping[str, Field] | None = None,
) -> dict[str, Any]:
    """Shifted samples as one pack, not padded: the collater does that, with its own `padding_idx`.

    `fields` says how media are joined: a family's table; by default, of the first family that has all these inputs.

    >>> import torch
    >>> ids, labels, mask = torch.tensor([5, 6]), torch.tensor([6, 7]), torch.tensor([0, 1])
    >>> one = {"input_ids": ids, "labels": labels, "attention_mask": mask}
    >>> _build_packed_vlm_sample([one, one], pack_size=8, padding_idx=0)["attention_mask"].tolist()
    [0, 1, 0, 2]
    """
    del padding_idx
    table = _fields_of(samples) if fields is None else fields
    return join_samples(samples, pack_size=pack_size, fields=table, has_mrope=has_mrope)


def _fields_of(samples: Sequence[Mapping[str, Any]]) -> Mapping[str, Field]:
    names = {name for sample in samples for name in sample if not (name in SEQUENCE_FIELDS or is_count(name))}
    try:
        return families.table_for(names)
    except UnknownName:
        return _FIELDS


def _prepared(
    sample: dict[str, Any],
    get_rope_index: Callable[..., Any] | None,
    three_way: ThreeWay | None,
    media_tokens: Sequence[int],
) -> dict[str, Any]:
    if get_rope_index is not None:
        positions = _compute_mrope_position_ids(sample, get_rope_index)
    elif three_way is not None and isinstance(sample, SampleInputs):
        # The family has three-way positions, and the sample knows where its media are: no model need be asked.
        positions = document_positions(sample.document, three_way)[1:]
    else:
        return _shift_sample(sample, media_tokens=media_tokens)
    return _shift_sample({**sample, "position_ids": positions}, has_mrope=True, media_tokens=media_tokens)


def _pack_of(family: str | None, samples: list[dict[str, Any]], **options: Any) -> PackInputs:
    pack = PackInputs(_build_packed_vlm_sample(samples, **options))
    pack.family = family
    return pack


class PackedDatasetWrapper(PackedSamples):
    """Packs, built when they are asked for: dictionaries of `input_ids`, `labels`, `attention_mask`, `position_ids` and
    media, at most `pack_size` tokens long.

    `inner_dataset` gives samples by number: `input_ids`, `labels` (unshifted) and `attention_mask` [T], and media. One
    that fails is replaced by a rule of (seed, epoch, index, attempt); `account()` has all of it by name, in the
    `ledger`, if one is given, whose samples the inner data set names. `left_out` are samples that the plan gave up.
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
        self.inner_dataset, self.padding_idx, self.get_rope_index = inner_dataset, padding_idx, get_rope_index
        self.has_mrope = get_rope_index is not None
        own = tokenising(inner_dataset)
        facts = own.encoder.facts if own else None
        pads = facts.tokeniser.pads if facts else ()
        three_way = facts.three_way if facts else None
        prepare = partial(_prepared, get_rope_index=get_rope_index, three_way=three_way, media_tokens=pads)
        options: dict[str, Any] = {
            "has_mrope": self.has_mrope or three_way is not None,
            "fields": facts.family.table if facts else None,
        }
        build = partial(
            _pack_of, facts.family.name if facts else None, pack_size=pack_size, padding_idx=padding_idx, **options
        )
        samples = ShiftedSamples(inner_dataset, prepare, max_retries=max_retries, seed=seed, ledger=ledger)
        super().__init__(samples, bins, pack_size, build, left_out=left_out)

    def carry(self) -> PackedDatasetWrapper | None:
        """Packs of the samples that this epoch's packs had no room for; `None` where there are none.

        Call it, in the process that made this wrapper, when the epoch's packs are done and accounted for.
        """
        bins = self.left_over()
        if not bins:
            return None
        ledger = None if self.samples.by_place else self.samples.log.ledger
        more = (self.padding_idx, self.get_rope_index, self.max_retries, self.seed, ledger)
        return PackedDatasetWrapper(self.inner_dataset, bins, self.pack_size, *more)


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
    if not drop_long_samples:
        refuse_long(costs, pack_size)
    media = [0 if isinstance(cost, Dropped) else cost.media for cost in costs]
    limits: dict[str, Any] = {"pack_size": pack_size, "ratio": packing_ratio, "max_packs": max_packs}
    plan = plan_bins(lengths, media, **limits, drop_long=drop_long_samples, balance=balance_media_tokens)
    left_out = [cost for cost in costs if isinstance(cost, Dropped)]
    left_out += [too_long(name_of(dataset, place), lengths[place], pack_size) for place in plan.too_long]
    asked = f"found no room in the first {max_packs} packs (max_packs)"
    left_out += [
        Dropped(key=name_of(dataset, place), reason=Reason.BEYOND_MAX_PACKS, detail=asked) for place in plan.beyond
    ]
    for line in described(left_out, len(costs)):
        logger.warning("%s", line)
    more: dict[str, Any] = {"seed": seed, "ledger": ledger, "left_out": left_out}
    return PackedDatasetWrapper(dataset, plan.bins, pack_size, padding_idx, get_rope_index, **more)


def _costs(dataset: Any, ds_raw: Any, processor: Any, exact: bool | None) -> Sequence[Cost | Dropped]:
    examples = LengthGroupedSampler._get_raw_samples(dataset if ds_raw is None else ds_raw)
    if exact:
        return count_exactly(dataset, examples, processor)
    if exact is None and ds_raw is None and (counted := exact_costs(dataset)) is not None:
        return counted
    known: dict[str, Any] = {
        "image_cfg": LengthGroupedSampler._extract_image_config(processor),
        "video_cfg": LengthGroupedSampler._extract_video_config(processor),
    }
    costs = quick_costs(examples, partial(_estimate_sample_length, **known, return_media_tokens=True), _shift_sample)
    if exact is None and ds_raw is None and not all(cost.exact for cost in costs):
        logger.warning(
            "lengths of a %s are estimated, so that some samples may find no room in their packs; a "
            "PreTokenizedDatasetWrapper knows them, and exact_lengths=True with a processor counts them",
            type(dataset).__name__,
        )
    return costs
