"""Which row of the batch owns which rows of a media tensor: by counts that are carried, never by a shape that fits.

Four samples with 3, 1, 0 and 0 images have four images in all. That is one each only by coincidence, so the counts
are looked at first:

    >>> import torch
    >>> batch = {"image_sizes": torch.zeros(4, 2), "n_images_per_sample": torch.tensor([3, 1, 0, 0])}
    >>> Ownership.read(batch, rows=4).extents("image_sizes", batch)
    [3, 1, 0, 0]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from lading.errors import ConfigError
from lading.fields import COUNT_NAMES, Field, MediaKind, row_count

Media = Tensor | Sequence[Any]
"""A media tensor, or a list with one entry a row (`second_per_grid_ts` may be a list of numbers)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaKey:
    """One input that models are fed media by. Law: it is cut by its medium's counts, along `field`."""

    kind: MediaKind
    field: Field
    counted_by: tuple[str, ...] = ()
    """Inputs that say how many rows each medium has, the first that is present: numbers, or grids to multiply out."""
    padded: bool = False
    """Whether it may come with one row a medium instead, padded to the largest."""


_IMAGE: Final = MediaKey(kind="image", field=Field(axis="image"))
_VIDEO: Final = MediaKey(kind="video", field=Field(axis="video"))
_AUDIO: Final = MediaKey(kind="audio", field=Field(axis="audio"))
_PIXELS: Final = MediaKey(
    kind="image",
    field=Field(axis="image_patch"),
    counted_by=("image_grid_thw", "image_grid_hws", "grid_thws", "n_tiles_per_image"),
    padded=True,
)
_CROPS: Final = MediaKey(kind="image", field=Field(axis="image_patch"), counted_by=("num_patches",))
_FRAMES: Final = MediaKey(
    kind="video", field=Field(axis="video_patch"), counted_by=("video_grid_thw", "num_frames_per_video"), padded=True
)

MEDIA_KEYS: Final[Mapping[str, MediaKey]] = {
    "pixel_values": _PIXELS,
    "patch_pixel_values": _CROPS,
    "num_patches": _IMAGE,
    "patch_newline_mask": _CROPS,
    "image_grid_hws": _IMAGE,
    "image_grid_thw": _IMAGE,
    "grid_thws": _IMAGE,
    "image_sizes": _IMAGE,
    "image_position_ids": _IMAGE,
    "spatial_shapes": _IMAGE,
    "pixel_attention_mask": _PIXELS,
    "pixel_values_local": MediaKey(kind="image", field=Field(axis="image_patch"), counted_by=("num_local_patches",)),
    "num_local_patches": _IMAGE,
    "batch_num_images": MediaKey(kind="image", field=Field(axis="sample")),
    "image_pixel_values": _IMAGE,
    "image_attention_mask": _IMAGE,
    "pixel_values_videos": _FRAMES,
    "video_grid_thw": _VIDEO,
    "second_per_grid_ts": _VIDEO,
    "video_second_per_grid": _VIDEO,
    "video_position_ids": MediaKey(
        kind="video", field=Field(axis="video_patch"), counted_by=("num_frames_per_video",), padded=True
    ),
    "num_frames_per_video": _VIDEO,
    "image_sizes_videos": _VIDEO,
    "input_features": _AUDIO,
    "feature_attention_mask": _AUDIO,
    "input_features_mask": _AUDIO,
    "audio_feature_lengths": _AUDIO,
    "audio_input_features": _AUDIO,
    "audio_embed_sizes": _AUDIO,
    "audio_attention_mask": _AUDIO,
}
"""Every media input of every family, and what its rows count. Whatever cuts media for a pipeline reads this table."""

COUNT_KEYS: Final = COUNT_NAMES
BOOKKEEPING: Final = (*COUNT_KEYS.values(), "n_tiles_per_image", *(row_count(name) for name in MEDIA_KEYS))
"""Numbers that only say what belongs to whom. No model takes them."""

STACKED: Final = ("pixel_values", "pixel_attention_mask")
"""[B, images, C, H, W] and [B, images, H, W]: together they are the layout of Idefics3 and SmolVLM."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ownership:
    """How many media each row of a batch has. Law: the media lie in the order of their rows."""

    rows: int
    counts: Mapping[MediaKind, tuple[int, ...]]
    """Only the kinds that are counted; the others are one each, or refused."""

    @classmethod
    def read(cls, batch: Mapping[str, Any], rows: int) -> Ownership:
        """The counts a batch carries. `batch_num_images` stands in for images where the usual name is missing."""
        counts: dict[MediaKind, tuple[int, ...]] = {}
        for kind, name in COUNT_KEYS.items():
            if batch.get(name) is not None:
                counts[kind] = _numbers(name, batch[name], rows)
        stand_in = batch.get("batch_num_images")
        if "image" not in counts and stand_in is not None and len(stand_in) == rows:
            counts["image"] = _numbers("batch_num_images", stand_in, rows)
        return cls(rows=rows, counts=counts)

    def extents(self, name: str, batch: Mapping[str, Any]) -> list[int]:
        """How many rows of `batch[name]` each row of the batch owns. They add up to all of them, or it is an error."""
        key, field = MEDIA_KEYS[name], self.layout(name, batch)
        found = _size(batch[name], field.dim)
        if batch.get(row_count(name)) is not None:
            own = _numbers(row_count(name), batch[row_count(name)], self.rows)
            return _checked(name, found, list(own), f"as {row_count(name)} says")
        if name in STACKED and field.axis == "sample":
            return [1] * self.rows
        counts = self.counts.get(key.kind) or _one_each(key.kind, batch, self.rows)
        if field.unit == "patch":
            return self._patches(name, found, batch, counts)
        if field.axis == "sample":
            having = [min(1, count) for count in counts]
            return having if found == sum(having) else _checked(name, found, [1] * self.rows, "one for each sample")
        return _checked(name, found, list(counts), _said(key.kind, counts))

    def layout(self, name: str, batch: Mapping[str, Any]) -> Field:
        """What the rows of `batch[name]` count, and along which axis.

        Idefics3 and SmolVLM stack images and masks by sample, or join all of them on the second axis.
        """
        pixels, mask = (batch.get(other) for other in STACKED)
        both = isinstance(pixels, Tensor) and isinstance(mask, Tensor) and pixels.ndim == 5 and mask.ndim == 4
        if name not in STACKED or not both:
            return MEDIA_KEYS[name].field
        return Field(axis="sample") if len(batch[name]) == self.rows else Field(axis="image_patch", dim=1)

    def _patches(self, name: str, found: int, batch: Mapping[str, Any], counts: Sequence[int]) -> list[int]:
        key = MEDIA_KEYS[name]
        counter = next((other for other in key.counted_by if batch.get(other) is not None), None)
        if counter is None and not key.padded:
            raise ConfigError(found=f"{name} by itself", wanted=f"{' or '.join(key.counted_by)} beside it")
        if counter is None:
            return _checked(name, found, list(counts), f"{_said(key.kind, counts)}, or {' or '.join(key.counted_by)}")
        sizes = medium_rows(batch[counter])
        _checked(counter, len(sizes), list(counts), _said(key.kind, counts))
        if key.padded and found == len(sizes) != sum(sizes):
            return list(counts)
        starts = [sum(counts[:row]) for row in range(len(counts))]
        owned = [sum(sizes[start : start + count]) for start, count in zip(starts, counts, strict=True)]
        return _checked(name, found, owned, f"as {counter} says")

    def check_complete(self, batch: Mapping[str, Any]) -> None:
        """Refuse counts of media that are not there at all."""
        there = {key.kind for name, key in MEDIA_KEYS.items() if batch.get(name) is not None}
        if any(batch.get(row_count(name)) is not None for name in MEDIA_KEYS):
            return  # One tensor may hold media of several kinds; its own rows are counted.
        for kind, counts in self.counts.items():
            if sum(counts) and kind not in there:
                raise ConfigError(
                    found=f"{COUNT_KEYS[kind]} = {list(counts)} and no {kind} tensors",
                    wanted=f"one of {', '.join(name for name, key in MEDIA_KEYS.items() if key.kind == kind)}",
                    where="media for pipeline stages",
                )


def medium_rows(counter: Media) -> list[int]:
    """Rows of each medium, from numbers [N] or from grids [N, 2 or 3], whose sides are multiplied.

    >>> import torch
    >>> medium_rows(torch.tensor([[1, 4, 6], [2, 2, 2]])), medium_rows([3, 0])
    ([24, 8], [3, 0])
    """
    numbers = torch.as_tensor(counter)
    return [int(number) for number in (numbers if numbers.ndim == 1 else numbers.flatten(1).prod(dim=-1)).tolist()]


def _one_each(kind: MediaKind, batch: Mapping[str, Any], rows: int) -> tuple[int, ...]:
    """The oldest layout: no counts, one medium for each row. Anything else without counts would be a guess."""
    present = [name for name, key in MEDIA_KEYS.items() if key.kind == kind and batch.get(name) is not None]
    # A grid has one row for each medium; pixels may have many, so they are asked only where nothing else is there.
    best = next((name for name in present if MEDIA_KEYS[name].field.axis == kind), present[0])
    if len(batch[best]) != rows:
        raise ConfigError(
            found=f"{len(batch[best])} rows of {best} for {rows} rows of the batch, without {COUNT_KEYS[kind]}",
            wanted=f"{COUNT_KEYS[kind]}, or exactly one {kind} for each row",
            consequence="media would go to the wrong microbatch",
        )
    return (1,) * rows


def _numbers(name: str, value: Media, rows: int) -> tuple[int, ...]:
    numbers = tuple(medium_rows(value))
    if len(numbers) != rows or min(numbers) < 0:
        raise ConfigError(found=f"{name} = {list(numbers)}", wanted=f"{rows} counts, one for each row of the batch")
    return numbers


def _size(value: Media, dim: int) -> int:
    return value.shape[dim] if isinstance(value, Tensor) else len(value)


def _said(kind: MediaKind, counts: Sequence[int]) -> str:
    return f"as {COUNT_KEYS[kind]} = {list(counts)} says"


def _checked(name: str, found: int, extents: list[int], wanted: str) -> list[int]:
    if found != sum(extents):
        raise ConfigError(
            found=f"{found} rows of {name}",
            wanted=f"{sum(extents)}, {wanted}",
            consequence="media would go to the wrong microbatch",
        )
    return extents
