"""What the rows of a tensor count.

A model family declares one `Field` for each tensor it feeds its model. Joining documents into a pack, cutting a pack
into microbatches, padding a batch and clipping a sample all read this one table, so no key can be forgotten in one of
five places.

    >>> Field(axis="image_patch").kind, Field(axis="image").kind, Field(axis="token").kind
    ('image', 'image', None)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from lading.errors import UnknownName

MediaKind = Literal["image", "video", "audio"]
MEDIA_KINDS: Final[tuple[MediaKind, ...]] = get_args(MediaKind)

Axis = Literal["token", "sample", "image", "image_patch", "video", "video_patch", "audio", "audio_patch"]
AXES: Final[tuple[Axis, ...]] = get_args(Axis)

IGNORE_INDEX: Final = -100


@dataclass(frozen=True, kw_only=True, slots=True)
class Field:
    """One tensor: its rows lie along `dim` and count `axis`; a token field is padded with `pad`."""

    axis: Axis
    dim: int = 0
    pad: int | Literal["count"] = 0
    """`"count"`: 0, 1, 2, … as positions do, so that padding is a document of its own."""

    def __post_init__(self) -> None:
        if self.axis not in AXES:
            raise UnknownName(kind="axis", name=str(self.axis), known=AXES, where="Field")

    @property
    def kind(self) -> MediaKind | None:
        """The medium the rows belong to; `None` for tokens and samples."""
        stem = self.axis.removesuffix("_patch")
        return next((kind for kind in MEDIA_KINDS if kind == stem), None)

    @property
    def ragged(self) -> bool:
        """Whether one medium may have many rows (patches), not just one."""
        return self.axis.endswith("_patch")


TOKEN_FIELDS: Final[dict[str, Field]] = {
    "input_ids": Field(axis="token"),
    "labels": Field(axis="token", pad=IGNORE_INDEX),
    "position_ids": Field(axis="token", dim=-1, pad="count"),
    "document_ids": Field(axis="token"),
}
"""The fields every family has. `document_ids` counts 1, 2, … in a pack; 0 is padding."""
