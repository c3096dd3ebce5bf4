"""Which row of a batch owns which rows of its media, where the batch is a plain dictionary: by counts that are carried.

Four samples with 3, 1, 0 and 0 images have four images in all. That is one each only by coincidence, so the counts
are looked at first:

    >>> import torch
    >>> batch = {"image_sizes": torch.zeros(4, 2), "n_images_per_sample": torch.tensor([3, 1, 0, 0])}
    >>> MediaRows.read(batch, rows=4).extents("image_sizes")
    [3, 1, 0, 0]

What the rows of an input count is declared by the families (`lading.families.media_inputs`). One name may count
several things: `pixel_values` has a row for each patch, for each tile, or for each image; the pages' four layouts are
told apart here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from lading.errors import ConfigError
from lading.families import media_inputs
from lading.fields import COUNT_NAMES, MEDIA_KINDS, ROW_NAMES, SEQUENCE_FIELDS, Field, MediaKind, is_count, row_count
from lading.microbatch import piece_sizes, piece_slices, piece_sums
from lading.tensors import cut, row_axis

Media = Tensor | Sequence[Any]
"""A media tensor, or a list with one entry a row (`second_per_grid_ts` may be a list of numbers)."""
Chunks = dict[str, list[Any]]

TILES: Final = "n_tiles_per_image"
STACKED: Final = ("pixel_values", "pixel_attention_mask")
"""[B, images, C, H, W] and [B, images, H, W]: together they are the layout of Idefics3 and SmolVLM."""
ROWS: Final = (*SEQUENCE_FIELDS, *ROW_NAMES, "document_ids", "decoder_input_ids", "decoder_attention_mask")
"""What has a row for each row of the batch, known by name."""
WHOLE: Final = ("input_mode",)
"""What Phi-4's page says of the batch as a whole; torch refuses to split it."""
WHERE: Final = "media for pipeline stages"


def bookkeeping(name: str) -> bool:
    """Whether it is a number that only says what belongs to whom; no model takes it.

    >>> bookkeeping("n_images_per_sample"), bookkeeping("n_tiles_per_image"), bookkeeping("num_patches")
    (True, True, False)
    """
    return is_count(name) or name == TILES


def row_axes(batch: Mapping[str, Any]) -> dict[str, int]:
    """The axis on which each tensor of a batch has its rows, as `TensorChunkSpec.from_dict` wants it.

    Three-way positions [3, B, S] have them second. Split on the first axis, as torch does by default, a microbatch
    would get a third of everybody's positions. The order is the batch's own: torch matches axes to inputs by order.

    >>> row_axes({"input_ids": torch.zeros(4, 9), "position_ids": torch.zeros(3, 4, 9)})
    {'input_ids': 0, 'position_ids': 1}
    """
    return {name: row_axis(name, value) for name, value in batch.items() if isinstance(value, Tensor)}


def chunk_media(batch: Mapping[str, Any], rows: int, pieces: int, fields: Mapping[str, Field] | None = None) -> Chunks:
    """The media inputs of a batch for each microbatch, `None` where it has no rows of one.

    A vision tower fails on an empty tensor, and a model without the input takes the way it takes for plain text.

    >>> batch = {"image_sizes": torch.arange(4), "n_images_per_sample": torch.tensor([3, 1, 0, 0])}
    >>> chunk_media(batch, rows=4, pieces=2)
    {'image_sizes': [tensor([0, 1, 2, 3]), None]}
    """
    sizes, media = piece_sizes(rows, pieces), MediaRows.read(batch, rows, fields)
    media.check_complete()
    chunks: Chunks = {}
    for name in media.declared:
        # What is stacked by sample has rows for samples without media too; their counts know better.
        counted = media.counted(name)
        having = sizes if counted is None else piece_sums(counted, sizes)
        cuts = zip(media.cut(name, pieces), having, strict=True)
        chunks[name] = [part if many and _size(part) else None for part, many in cuts]
    return chunks


def refuse_undeclared(batch: Mapping[str, Any], fields: Mapping[str, Field] | None = None) -> None:
    """A tensor that nobody declared would be split by its first axis, whatever that counts."""
    known = {*ROWS, *WHOLE, *media_inputs(), *(fields or {})}
    undeclared = [
        name for name, value in batch.items() if name not in known and not bookkeeping(name) and _holds(value)
    ]
    if undeclared:
        raise ConfigError(
            found=f"{', '.join(undeclared)}, which no family declares",
            wanted="only media inputs that a family declares in its fields, or fields={name: Field(axis=…)} for others",
            consequence="nobody would know which rows belong to which microbatch",
            where=WHERE,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaRows:
    """The media of a batch, and how many each row of it has. Law: the media lie in the order of their rows."""

    batch: Mapping[str, Any]
    rows: int
    declared: Mapping[str, tuple[Field, ...]]
    """The media inputs that are there, each with all that its rows may count."""
    counts: Mapping[MediaKind, tuple[int, ...]]
    """Only the kinds that are counted; the others are one each, or refused."""

    @classmethod
    def read(cls, batch: Mapping[str, Any], rows: int, fields: Mapping[str, Field] | None = None) -> MediaRows:
        """The counts a batch carries. `batch_num_images` stands in for images where the usual name is missing."""
        own = {name: (field,) for name, field in (fields or {}).items() if field.axis != "token"}
        present = [name for name in {**media_inputs(), **own} if batch.get(name) is not None]
        declared = media_inputs(name for name in present if name not in own) | own
        counts: dict[MediaKind, tuple[int, ...]] = {}
        for kind, name in COUNT_NAMES.items():
            if batch.get(name) is not None:
                counts[kind] = _numbers(name, batch[name], rows)
        stand_in = batch.get("batch_num_images")
        if "image" not in counts and stand_in is not None and len(stand_in) == rows:
            counts["image"] = _numbers("batch_num_images", stand_in, rows)
        return cls(batch=batch, rows=rows, declared={name: declared[name] for name in present}, counts=counts)

    def cut(self, name: str, pieces: int) -> list[Any]:
        """One media input, cut. A microbatch without media gets a tensor of no rows.

        >>> media = MediaRows.read({"image_sizes": torch.arange(4), "n_images_per_sample": [3, 1, 0, 0]}, rows=4)
        >>> media.cut("image_sizes", pieces=2)
        [tensor([0, 1, 2, 3]), tensor([], dtype=torch.int64)]
        """
        sizes, value = piece_sizes(self.rows, pieces), self.batch[name]
        if pieces == 1 and self.counted(name) is None:
            return [value]  # There is nobody else it could belong to.
        owned = piece_sums(self.extents(name), sizes)
        if isinstance(value, Tensor):
            return cut(value, owned, self.dim(name))
        return [list(value[part]) for part in piece_slices(owned)]

    def extents(self, name: str) -> list[int]:
        """How many rows of an input each row of the batch owns. They add up to all of them, or it is an error."""
        value = self.batch[name]
        found = value.shape[self.dim(name)] if isinstance(value, Tensor) else len(value)
        own = self.batch.get(row_count(name))
        if own is not None:
            return _checked(name, found, list(_numbers(row_count(name), own, self.rows)), f"as {row_count(name)} says")
        if not self.kinds(name) or (self._stacked(name) and not self.dim(name)):
            return _checked(name, found, [1] * self.rows, "one for each sample")
        counts = self._media_counts(name) or self._one_each(name)
        if any(field.unit in ("patch", "run") for field in self.declared[name]):
            return self._patches(name, found, counts)
        if all(field.unit == "group" for field in self.declared[name]):
            having = [min(1, count) for count in counts]
            return having if found == sum(having) else _checked(name, found, [1] * self.rows, "one for each sample")
        return _checked(name, found, list(counts), self._counts_say(name, counts))

    def dim(self, name: str) -> int:
        """The axis along which the rows of an input lie.

        Idefics3 and SmolVLM stack images and masks by sample, or join all of them on the second axis.
        """
        if name in STACKED:
            return int(self._stacked(name) and len(self.batch[name]) != self.rows)
        return self.declared[name][0].dim

    def kinds(self, name: str) -> list[MediaKind]:
        """The media an input belongs to: those that all of its declarations agree on; none for samples."""
        fields = self.declared[name]
        common = [kind for kind in MEDIA_KINDS if all(kind in field.kinds for field in fields)]
        if not common and any(field.kinds for field in fields):
            raise ConfigError(
                found=f"{name}, which families declare as {' and as '.join(field.axis for field in fields)}",
                wanted=f"fields={{{name!r}: Field(axis=…)}}, as the family of this batch declares it",
                consequence="media would go to the wrong microbatch",
            )
        return common

    def counted(self, name: str) -> list[int] | None:
        """How many rows, or media, each row of the batch has of an input, where the batch says so."""
        own = self.batch.get(row_count(name))
        return self._media_counts(name) if own is None else medium_rows(own)

    def check_complete(self) -> None:
        """Refuse counts of media that are not there at all."""
        if any(self.batch.get(row_count(name)) is not None for name in self.declared):
            return  # One tensor may hold media of several kinds; its own rows are counted.
        there = {kind for name in self.declared for kind in self.kinds(name)}
        for kind, counts in self.counts.items():
            if sum(counts) and kind not in there:
                names = [
                    name for name, fields in media_inputs().items() if any(kind in field.kinds for field in fields)
                ]
                raise ConfigError(
                    found=f"{COUNT_NAMES[kind]} = {list(counts)} and no {kind} tensors",
                    wanted=f"one of {', '.join(names)}",
                    where=WHERE,
                )

    def _media_counts(self, name: str) -> list[int] | None:
        known = [self.counts[kind] for kind in self.kinds(name) if kind in self.counts]
        return [sum(numbers) for numbers in zip(*known, strict=True)] if known else None

    def _patches(self, name: str, found: int, counts: Sequence[int]) -> list[int]:
        fields = self.declared[name]
        counters = dict.fromkeys(counter for field in fields for counter in field.counted_by)
        if any(field.axis == "image_patch" and not field.counted_by for field in fields) or name in STACKED:
            counters[TILES] = None
        counter = next((other for other in counters if self.batch.get(other) is not None), None)
        # Some families pad the patches of each medium and give it one row.
        padded = any(not field.unit for field in media_inputs().get(name, ()))
        if counter is None and not padded:
            raise ConfigError(
                found=f"{name} by itself", wanted=f"{' or '.join((*counters, row_count(name)))} beside it"
            )
        if counter is None:
            wanted = f"{self._counts_say(name, counts)}, or {' or '.join((*counters, row_count(name)))}"
            return _checked(name, found, list(counts), wanted)
        sizes = medium_rows(self.batch[counter])
        _checked(counter, len(sizes), list(counts), self._counts_say(name, counts))
        if padded and found == len(sizes) != sum(sizes):
            return list(counts)
        return _checked(name, found, piece_sums(sizes, counts), f"as {counter} says")

    def _one_each(self, name: str) -> list[int]:
        """The oldest layout: no counts, one medium for each row. Anything else without counts would be a guess."""
        kinds = self.kinds(name)
        present = [other for other in self.declared if self.kinds(other) == kinds]
        # A grid has one row for each medium; pixels may have many, so they are asked only where nothing else is there.
        best = next((other for other in present if not any(field.unit for field in self.declared[other])), present[0])
        if len(self.batch[best]) != self.rows:
            counts = " and ".join(COUNT_NAMES[kind] for kind in kinds)
            raise ConfigError(
                found=f"{len(self.batch[best])} rows of {best} for {self.rows} rows of the batch, without {counts}",
                wanted=f"{counts}, or exactly one {kinds[0]} for each row",
                consequence="media would go to the wrong microbatch",
            )
        return [1] * self.rows

    def _stacked(self, name: str) -> bool:
        both = [self.batch.get(other) for other in STACKED]
        return name in STACKED and [value.ndim for value in both if isinstance(value, Tensor)] == [5, 4]

    def _counts_say(self, name: str, counts: Sequence[int]) -> str:
        return f"as {' and '.join(COUNT_NAMES[kind] for kind in self.kinds(name))} = {list(counts)} says"


def medium_rows(counter: Media) -> list[int]:
    """Rows of each medium, from numbers [N] or from grids [N, 2 or 3], whose sides are multiplied.

    >>> medium_rows(torch.tensor([[1, 4, 6], [2, 2, 2]])), medium_rows([3, 0])
    ([24, 8], [3, 0])
    """
    numbers = torch.as_tensor(counter)
    return [int(number) for number in (numbers if numbers.ndim == 1 else numbers.flatten(1).prod(dim=-1)).tolist()]


def _numbers(name: str, value: Media, rows: int) -> tuple[int, ...]:
    numbers = tuple(medium_rows(value))
    if len(numbers) != rows or min(numbers) < 0:
        raise ConfigError(found=f"{name} = {list(numbers)}", wanted=f"{rows} counts, one for each row of the batch")
    return numbers


def _checked(name: str, found: int, extents: list[int], wanted: str) -> list[int]:
    if found != sum(extents):
        raise ConfigError(
            found=f"{found} rows of {name}",
            wanted=f"{sum(extents)}, {wanted}",
            consequence="media would go to the wrong microbatch",
        )
    return extents


def _size(value: Media) -> int:
    return value.numel() if isinstance(value, Tensor) else len(value)


def _holds(value: object) -> bool:
    """Whether it is a tensor, or a list or tuple of them."""
    return isinstance(value, Tensor) or (isinstance(value, list | tuple) and any(_holds(entry) for entry in value))
