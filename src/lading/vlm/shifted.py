"""Samples as dictionaries → one pack as a dictionary, for whoever does not carry records.

Each sample is shifted by itself (place t predicts token t + 1), then they are joined:

    ids     5 6 7 | 8 9        labels   _ 6 7 | _ 9
    pack    5 6   | 8                   6 7   | 9         attention_mask 1 1 2, position_ids 0 1 0
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from lading.errors import ConfigError, Reason, SkipSample, UnknownName
from lading.fields import IGNORE_INDEX, SEQUENCE_FIELDS, Field, is_count
from lading.tensors import join, shift

RopeIndex = Callable[..., Any]
"""`get_rope_index` of a model."""


def rope_positions(sample: Mapping[str, Any], get_rope_index: RopeIndex) -> Tensor:
    """The positions [3, T] that the model gives the sample alone.

    What the function takes is read off its signature. Where it wants `mm_token_type_ids` and the sample has none, they
    are made from the token ids in the configuration of the model that the function belongs to.
    """
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


def _token_types(sample: Mapping[str, Any], get_rope_index: RopeIndex) -> Tensor:
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


def shift_sample(
    sample: Mapping[str, Any],
    *,
    media_keys: Collection[str],
    has_mrope: bool = False,
    media_tokens: Collection[int] = (),
) -> dict[str, Tensor]:
    """The sample without its last input token and its first label.

    The last token of a medium is never dropped: such a sample keeps its length, and its last place predicts nothing.
    Whether it is one is known from `mm_token_type_ids` or from `media_tokens` (ids); without both, a sample with media
    that ends in a run of one untrained token is taken to end in a medium.
    """
    tensors = _checked(sample, media_keys, has_mrope)
    if _ends_in_medium(tensors, media_keys, media_tokens):
        return {**tensors, "labels": shift(tensors["labels"], [len(tensors["labels"])])}
    shifted = {name: value[..., :-1] if name in SEQUENCE_FIELDS else value for name, value in tensors.items()}
    return {**shifted, "labels": tensors["labels"][1:]}


def _checked(sample: Mapping[str, Any], media_keys: Collection[str], has_mrope: bool) -> dict[str, Tensor]:
    """The sample's tensors; what is missing, strange, or of another length is said."""
    given = {name: value for name, value in sample.items() if value is not None}
    for name in given:
        if not (name in SEQUENCE_FIELDS or name in media_keys or is_count(name)):
            raise UnknownName(kind="key of a sample", name=str(name), known=(*SEQUENCE_FIELDS, *media_keys))
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


def _ends_in_medium(sample: Mapping[str, Tensor], media_keys: Collection[str], media_tokens: Collection[int]) -> bool:
    if "mm_token_type_ids" in sample:
        return bool(sample["mm_token_type_ids"][-1])
    before, last = sample["input_ids"][-2:].tolist()
    if media_tokens:
        return last in media_tokens
    has_media = any(name in media_keys for name in sample)
    return has_media and last == before and int(sample["labels"][-1]) == IGNORE_INDEX


def join_samples(
    samples: Sequence[Mapping[str, Tensor]], *, pack_size: int, fields: Mapping[str, Field], has_mrope: bool = False
) -> dict[str, Tensor]:
    """Shifted samples side by side: `attention_mask` counts them 1, 2, …, and `position_ids` begin anew at each.

    A token that its own sample hides (mask 0) stays hidden. `fields` says how media are joined.
    """
    tokens = sum(len(sample["input_ids"]) for sample in samples)
    if not samples or tokens > pack_size:
        raise ConfigError(
            found=f"{len(samples)} samples of {tokens} tokens",
            wanted=f"at least one sample, and at most {pack_size} tokens",
            where="packing",
        )
    names = dict.fromkeys(name for sample in samples for name in sample)
    parts = [_part(sample, place, names, has_mrope) for place, sample in enumerate(samples, start=1)]
    counts = {name: Field(axis="sample") for name in names if is_count(name)}
    return join(parts, {**fields, **SEQUENCE_FIELDS, **counts})


def _part(sample: Mapping[str, Tensor], place: int, names: Iterable[str], has_mrope: bool) -> dict[str, Tensor]:
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
        "attention_mask": (mask != 0).long() * place,
        "position_ids": sample.get("position_ids", plain.expand(3, -1)) if has_mrope else plain,
    }
