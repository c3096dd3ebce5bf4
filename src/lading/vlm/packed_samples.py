"""Samples as dictionaries → packs as dictionaries.

Each sample is shifted by itself (place t predicts token t + 1), then they are joined:

    ids     5 6 7 | 8 9        labels   _ 6 7 | _ 9
    pack    5 6   | 8                   6 7   | 9         attention_mask 1 1 2, position_ids 0 1 0
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from lading import families
from lading.errors import ConfigError, Reason, SkipSample, UnknownName
from lading.fields import IGNORE_INDEX, SEQUENCE_FIELDS, Field, is_count
from lading.ledger import Ledger
from lading.packing.pack import document_positions
from lading.records import Dropped, SampleKey
from lading.tensors import join, shift
from lading.vlm.padded_batches import as_inputs, sample_counts
from lading.vlm.planning import name_of, tokenising
from lading.vlm.replacement import ReplacementLog, Replacing

Sample = dict[str, Any]

MEDIA_FIELDS: Final[Mapping[str, Field]] = {
    **families.OTHER_INPUTS,
    **{name: field for family in families.all_families() for name, field in family.fields.items()},
}
"""Every media input of every family: what may stand in a sample beside its tokens."""


def rope_positions(sample: Sample, get_rope_index: Callable[..., Any] | None) -> Tensor | None:
    """The positions [3, T] that a model gives the sample alone; `None` without tokens, or without a function to ask.

    What the function takes is read off its signature. Where it wants `mm_token_type_ids` and the sample has none, they
    are made from the token ids in the configuration of the model that the function belongs to.
    """
    if get_rope_index is None or sample.get("input_ids") is None:
        return None
    parameters = inspect.signature(get_rope_index).parameters
    rows = {name: sample[name][None] for name in ("input_ids", "attention_mask") if sample.get(name) is not None}
    offered = {**sample, **rows, "second_per_grids": sample.get("video_second_per_grid")}
    if sample.get("feature_attention_mask") is not None:
        offered["audio_seqlens"] = sample["feature_attention_mask"].sum(dim=-1)
    if "mm_token_type_ids" in parameters:
        offered["mm_token_type_ids"] = _token_types(sample, get_rope_index)[None]
    taken = {name: value for name, value in offered.items() if name in parameters and value is not None}
    positions: Tensor = get_rope_index(**taken)[0]
    return positions[:, 0]


def _token_types(sample: Sample, get_rope_index: Callable[..., Any]) -> Tensor:
    """0 for text, 1 for a picture's tokens, 2 for a clip's, [T]."""
    given, ids = sample.get("mm_token_type_ids"), sample["input_ids"]
    if isinstance(given, Tensor):
        return given
    if not inspect.ismethod(get_rope_index):
        raise ConfigError(
            found="a sample without mm_token_type_ids, and a get_rope_index that is no model's method",
            wanted="the one or the other",
            consequence="pictures could not be told from text",
        )
    model: Any = get_rope_index.__self__
    types: Tensor = (ids == model.config.image_token_id).long() + 2 * (ids == model.config.video_token_id).long()
    return types


def shift_sample(sample: Sample, has_mrope: bool = False, media_tokens: Collection[int] = ()) -> Sample:
    """The sample without its last input token and its first label, so that place t predicts token t + 1.

    The last token of a medium is never dropped: such a sample keeps its length, and its last place predicts nothing.
    Whether it is one is known from `mm_token_type_ids` or from `media_tokens` (ids); without both, a sample with media
    that ends in a run of one untrained token is taken to end in a medium.

    >>> shifted = shift_sample({"input_ids": torch.tensor([5, 6, 7]), "labels": torch.tensor([-100, 6, 7])})
    >>> shifted["input_ids"].tolist(), shifted["labels"].tolist(), shifted["attention_mask"].tolist()
    ([5, 6], [6, 7], [1, 1])
    """
    tensors = _checked_tensors(sample, has_mrope)
    if "mm_token_type_ids" in tensors:
        ends_in_medium = bool(tensors["mm_token_type_ids"][-1])
    elif media_tokens:
        ends_in_medium = int(tensors["input_ids"][-1]) in media_tokens
    else:
        before, last = tensors["input_ids"][-2:].tolist()
        untrained = last == before and int(tensors["labels"][-1]) == IGNORE_INDEX
        ends_in_medium = untrained and any(name in MEDIA_FIELDS for name in tensors)
    if ends_in_medium:
        return {**tensors, "labels": shift(tensors["labels"], [len(tensors["labels"])])}
    shifted = {name: value[..., :-1] if name in SEQUENCE_FIELDS else value for name, value in tensors.items()}
    return {**shifted, "labels": tensors["labels"][1:]}


def _checked_tensors(sample: Sample, has_mrope: bool) -> dict[str, Tensor]:
    """The sample's tensors; what is missing, unknown, or of another length is an error."""
    given = {name: value for name, value in sample.items() if value is not None}
    for name in given:
        if not (name in SEQUENCE_FIELDS or name in MEDIA_FIELDS or is_count(name)):
            raise UnknownName(kind="key of a sample", name=str(name), known=(*SEQUENCE_FIELDS, *MEDIA_FIELDS))
    if not {"input_ids", "labels"} <= set(given):
        raise ConfigError(
            found=f"a sample with {', '.join(given) or 'nothing'}", wanted="input_ids and labels", where="packing"
        )
    tensors = {name: torch.as_tensor(value) for name, value in given.items() if has_mrope or name != "position_ids"}
    tensors.setdefault("attention_mask", torch.ones_like(tensors["input_ids"]))
    sizes = {name: tensors[name].shape[-1] for name in SEQUENCE_FIELDS if name in tensors}
    if len(set(sizes.values())) > 1 or tensors["input_ids"].ndim != 1:
        raise ConfigError(found=f"a sample with {sizes} tokens", wanted="one number for all of them, [T]")
    if sizes["input_ids"] < 2:
        raise SkipSample(Reason.NO_LABEL_TOKENS, found=f"{sizes['input_ids']} tokens", wanted="2, to learn one of them")
    return tensors


def join_samples(
    samples: list[Sample],
    pack_size: int,
    padding_idx: int,
    has_mrope: bool = False,
    fields: Mapping[str, Field] | None = None,
) -> Sample:
    """Shifted samples as one pack: `attention_mask` counts them 1, 2, …, and `position_ids` begin anew at each.

    A token that its own sample hides (mask 0) stays hidden. The pack is not padded: the collater does that, with its
    own `padding_idx`. `fields` says how media are joined: a family's table; by default, of the first family that has
    all these inputs.

    >>> ids, labels, mask = torch.tensor([5, 6]), torch.tensor([6, 7]), torch.tensor([0, 1])
    >>> one = {"input_ids": ids, "labels": labels, "attention_mask": mask}
    >>> join_samples([one, one], pack_size=8, padding_idx=0)["attention_mask"].tolist()
    [0, 1, 0, 2]
    """
    del padding_idx
    tokens = sum(len(sample["input_ids"]) for sample in samples)
    if not samples or tokens > pack_size:
        raise ConfigError(
            found=f"{len(samples)} samples of {tokens} tokens",
            wanted=f"at least one sample, and at most {pack_size} tokens",
            where="packing",
        )
    names = dict.fromkeys(name for sample in samples for name in sample)
    parts = [_part(sample, number, names, has_mrope) for number, sample in enumerate(samples, start=1)]
    counts = {name: Field(axis="sample") for name in names if is_count(name)}
    if fields is None:
        try:
            fields = families.table_for(name for name in names if name not in counts and name not in SEQUENCE_FIELDS)
        except UnknownName:
            fields = MEDIA_FIELDS
    return {**join(parts, {**fields, **SEQUENCE_FIELDS, **counts})}


def _part(sample: Sample, number: int, names: Iterable[str], has_mrope: bool) -> dict[str, Tensor]:
    ids = sample["input_ids"]
    plain = torch.arange(len(ids))
    mask = sample.get("attention_mask", torch.ones_like(ids))
    # Where one sample says what its tokens are, or how many media it has, one that does not is text alone.
    text = {name: torch.zeros_like(ids) for name in names if name in SEQUENCE_FIELDS}
    none = {name: torch.zeros(1, dtype=torch.long) for name in names if is_count(name)}
    return {
        **text,
        **none,
        **sample,
        "attention_mask": (mask != 0).long() * number,
        "position_ids": sample.get("position_ids", plain.expand(3, -1)) if has_mrope else plain,
    }


class ShiftedSamples(Replacing):
    """The samples under the packs, each with its positions and shifted; one that fails is replaced, by name.

    Without a ledger of a whole corpus they have one of their own, numbered by their places. `three_way` says whether
    their positions are [3, T].
    """

    def __init__(
        self,
        dataset: Any,
        get_rope_index: Callable[..., Any] | None,
        *,
        max_retries: int,
        seed: int,
        ledger: Ledger | None,
    ) -> None:
        own = tokenising(dataset)
        self.facts = own.encoder.facts if own else None
        self.get_rope_index, self.by_place = get_rope_index, ledger is None
        self.three_way = get_rope_index is not None or (self.facts is not None and self.facts.three_way is not None)
        super().__init__(dataset, max_retries=max_retries, seed=seed, ledger=ledger or _ledger(dataset))

    def key(self, place: int) -> SampleKey:
        """The name of a sample."""
        return name_of(self.dataset, place) if self.by_place else super().key(place)

    def fetch(self, index: int) -> Sample:
        """The sample itself, not a stand-in that its data set would draw: that one may be longer than planned."""
        sample: Sample
        own = tokenising(self.dataset)
        if own is not None:
            encoded, facts = own.encoded(index), own.encoder.facts
            sample = {**as_inputs(encoded), **sample_counts(encoded.document, facts.family.table)}
            if self.get_rope_index is None and facts.three_way is not None:
                # The sample knows where its media are: no model need be asked.
                sample["position_ids"] = document_positions(encoded.document, facts.three_way)[1:]
        else:
            sample = self.dataset.fetch(index) if isinstance(self.dataset, Replacing) else self.dataset[index]
        if self.get_rope_index is not None:
            sample = {**sample, "position_ids": rope_positions(sample, self.get_rope_index)}
        pads = self.facts.tokeniser.pads if self.facts else ()
        return shift_sample(sample, has_mrope=self.three_way, media_tokens=pads)

    def set_epoch(self, epoch: int, ledger: Ledger | None = None) -> None:
        """Start another epoch, with another ledger where it is this object's own."""
        super().set_epoch(epoch, ledger or (_ledger(self.dataset) if self.by_place else None))


def _ledger(dataset: Any) -> Ledger:
    return Ledger(sources=(type(dataset).__name__,), source=np.zeros(len(dataset), dtype=np.int32))


class PackLog(ReplacementLog):
    """Writes what became of a pack under the names of its samples."""

    def __init__(self, samples: ReplacementLog, keys: Callable[[int], list[SampleKey]]) -> None:
        super().__init__(None)
        self.samples, self.keys = samples, keys

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "samples": self.samples, "keys": self.keys}

    def write(self, entry: Dropped) -> None:
        by = tuple(key for pack in entry.by for key in self.keys(pack.index))
        for key in self.keys(entry.key.index):
            self.samples.write(replace(entry, key=key, by=by))
