"""What the rows of a tensor count.

A model family declares one `Field` for each tensor it feeds its model. Joining documents into a pack, cutting a pack
into microbatches, padding a batch and clipping a sample all read this one table, so no key can be forgotten in one of
five places.

    >>> Field(axis="image_patch").kinds, Field(axis="visual_patch").unit, Field(axis="token").kinds
    (('image',), 'patch', ())
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from lading.errors import UnknownName

MediaKind = Literal["image", "video", "audio"]
MEDIA_KINDS: Final[tuple[MediaKind, ...]] = get_args(MediaKind)

Axis = Literal[
    "token",
    "sample",
    "image",
    "image_patch",
    "image_group",
    "video",
    "video_patch",
    "video_run",
    "audio",
    "audio_patch",
    "visual_patch",
]
AXES: Final[tuple[Axis, ...]] = get_args(Axis)
"""What a row may stand for: a token or a document; a medium; one of a medium's patches (or tiles, or crops); one of its
runs of pads (a frame between timestamps); a document that has such media at all (`image_group`). `visual_patch` counts
the patches of pictures and clips together, in reading order."""

IGNORE_INDEX: Final = -100


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One tensor: its rows lie along `dim` and count `axis`; a token field is padded with `pad`."""

    axis: Axis
    dim: int = 0
    pad: int | Literal["count"] = 0
    """`"count"`: 0, 1, 2, … as positions do, so that padding is a document of its own."""
    stretch: int | None = None
    """A second axis that grows to the widest medium of a pack (its patches or frames), filled with `pad` behind."""
    counted_by: tuple[str, ...] = ()
    """The inputs of which one says how many rows each medium has: a number each, or a grid whose sides are multiplied.
    A batch that is a plain dictionary, without documents, is cut by it."""

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UnknownName(kind="axis", name=str(self.axis), known=AXES, where="Field")

    @property
    def kinds(self) -> tuple[MediaKind, ...]:
        """The media the rows belong to; none for tokens and samples."""
        stem = self.axis.partition("_")[0]
        if stem == "visual":
            return ("image", "video")
        return tuple(kind for kind in MEDIA_KINDS if kind == stem)

    @property
    def unit(self) -> str:
        """What of a medium a row is: the medium itself (""), its `patch`, its `run`, or the `group` of them all."""
        return self.axis.partition("_")[2]


TOKEN_FIELDS: Final[dict[str, Field]] = {
    "input_ids": Field(axis="token"),
    "labels": Field(axis="token", pad=IGNORE_INDEX),
    "position_ids": Field(axis="token", dim=-1, pad="count"),
    "document_ids": Field(axis="token"),
    "loss_weights": Field(axis="token"),
}
"""The fields every family has. `document_ids` counts 1, 2, … in a pack; 0 is padding. `loss_weights` are there where
they are asked for: how much the loss of each label counts."""
OUTSIDE_MODEL: Final = ("loss_weights",)
"""Token fields that no model takes: a batch has them beside its inputs."""

SEQUENCE_FIELDS: Final[dict[str, Field]] = {
    **{name: TOKEN_FIELDS[name] for name in ("input_ids", "labels", "position_ids")},
    **{name: Field(axis="token") for name in ("attention_mask", "token_type_ids", "mm_token_type_ids")},
}
"""What has one entry for each token in batches that are plain dictionaries, known by name."""

ROW_NAMES: Final = ("shift_labels", "attention_mask")
"""What a batch has besides the fields of its family, a row of it for each row of the batch."""

COUNT_NAMES: Final[dict[MediaKind, str]] = {kind: f"n_{kind}s_per_sample" for kind in MEDIA_KINDS}
"""Where a batch says how many media each of its rows has: [B] numbers. No model takes these."""

BOUNDARIES: Final = ("cu_seq_lens_q", "cu_seq_lens_k")
LONGEST: Final = ("max_length_q", "max_length_k")
"""Where a batch says at which places documents begin, all rows laid end to end, and how long the longest is, for
queries and for keys: transformers' names for what variable-length attention wants."""


def row_count(name: str) -> str:
    """Where a batch says how many rows of one input each of its own rows has, if nothing else tells.

    >>> row_count("pixel_values")
    'n_pixel_values_per_sample'
    """
    return f"n_{name}_per_sample"


def is_count(name: str) -> bool:
    """Whether it is a number for each sample that no model takes: of its media, or of its rows of one input.

    >>> is_count("n_images_per_sample"), is_count(row_count("pixel_values")), is_count("pixel_values")
    (True, True, False)
    """
    return name.startswith("n_") and name.endswith("_per_sample")
