"""Media as byte patches, for processors of the Qwen-VL kind, and whether such patches are what a processor makes.

`RawPatches.read` takes the numbers from a processor; `agrees` shows both the same noise, once. Only where their answers
are equal does a processor's own class go unasked from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lading.errors import SkipSample
from lading.family import Geometry, RawMedia, TensorMaker
from lading.fields import MediaKind
from lading.media import image, measure, video
from lading.media.normalise import normalised
from lading.media.patches import PatchCutter
from lading.media.pixels import of_kind
from lading.records import Footprint, MediaPart, PixelScale

if TYPE_CHECKING:
    from torch import Tensor

TOLERANCE = 1e-5
"""How far our numbers may be from a processor's."""
NOISE = {"image": (1, 45, 61), "video": (4, 45, 61)}
"""Frames, height and width of what a processor is shown: sizes that no processor leaves as they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RawPatches:
    """How pictures and clips become byte patches, and bytes numbers."""

    pictures: PatchCutter
    clips: PatchCutter
    scales: Mapping[str, PixelScale]
    seconds: str | None
    """Under which name the model is told how much time a patch of a clip spans, if it is."""
    sounds: TensorMaker | None
    """What else the family is fed."""

    @classmethod
    def read(
        cls, processor: Any, *, seconds: str | None = "second_per_grid_ts", sounds: TensorMaker | None = None
    ) -> RawPatches | None:
        """Take the numbers from a processor; `None` from one that does not resize, scale and normalise."""
        seen, played = processor.image_processor, processor.video_processor
        if not (_usual(seen) and _usual(played)):
            return None
        return cls(
            pictures=_cutter(seen, depth=1),
            clips=_cutter(played, depth=played.temporal_patch_size),
            scales={
                "pixel_values": _scale(seen, repeat=seen.temporal_patch_size),
                "pixel_values_videos": _scale(played, repeat=1),
            },
            seconds=seconds,
            sounds=sounds,
        )

    def tensors(
        self,
        processor: Any,
        text: str,
        parts: Sequence[MediaPart],
        footprints: Sequence[Footprint],
        *,
        draft: bool = False,
    ) -> dict[str, Any]:
        """The media tensors of one sample; with `draft`, large JPEGs are decoded at a fraction of their size."""
        import torch

        tensors: dict[str, Any] = {}
        if pictures := of_kind("image", parts, footprints):
            side = self.pictures.patch
            decoded = [
                image.pixels(part, at_least=(own.grid[1] * side, own.grid[2] * side) if draft else None)
                for part, own in pictures
            ]
            grids = [own.grid for _, own in pictures]
            tensors["pixel_values"] = self.pictures.cut([picture[None] for picture in decoded], grids)
            tensors["image_grid_thw"] = torch.tensor(grids)
        if clips := of_kind("video", parts, footprints):
            grids = [own.grid for _, own in clips]
            frames = [video.decode(part, own.frames) for part, own in clips]
            tensors["pixel_values_videos"] = self.clips.cut(frames, grids)
            tensors["video_grid_thw"] = torch.tensor(grids)
            if self.seconds is not None:
                tensors[self.seconds] = torch.tensor([own.seconds for _, own in clips], dtype=torch.float32)
        return tensors | (self.sounds(processor, text, parts, footprints) if self.sounds else {})


def agrees(raw: RawMedia, processor: Any, tensors: TensorMaker, geometries: Mapping[MediaKind, Geometry]) -> bool:
    """Whether bytes, scaled, are what the processor itself makes of the same noise."""
    return all(_agrees(raw, processor, tensors, kind, own) for kind, own in geometries.items() if kind in NOISE)


def _agrees(raw: RawMedia, processor: Any, tensors: TensorMaker, kind: MediaKind, geometry: Geometry) -> bool:
    part = _noise(kind)
    try:
        footprints = geometry.footprints([measure(part)])
    except SkipSample:
        # Somebody's own numbers leave no room for it; then there is nothing to go by.
        return False
    theirs = tensors(processor, "", [part], footprints)
    ours = normalised(raw.tensors(processor, "", [part], footprints), raw.scales)
    return all(_equal(ours[name], theirs[name]) for name in raw.scales if name in theirs)


def _equal(ours: Tensor, theirs: Tensor) -> bool:
    return ours.shape == theirs.shape and float((ours - theirs).abs().max()) <= TOLERANCE


def _noise(kind: MediaKind) -> MediaPart:
    from PIL import Image

    pictures = [
        Image.fromarray(pixels) for pixels in np.random.default_rng(0).integers(0, 256, (*NOISE[kind], 3), np.uint8)
    ]
    return MediaPart(kind=kind, reference=pictures[0] if kind == "image" else tuple(pictures))


def _usual(numbers: Any) -> bool:
    from transformers.image_utils import pil_torch_interpolation_mapping

    return bool(
        numbers is not None
        and numbers.do_resize
        and numbers.do_rescale
        and numbers.do_normalize
        and numbers.resample in pil_torch_interpolation_mapping
    )


def _cutter(numbers: Any, *, depth: int) -> PatchCutter:
    from transformers.image_utils import pil_torch_interpolation_mapping

    return PatchCutter(
        patch=numbers.patch_size,
        merge=numbers.merge_size,
        depth=depth,
        interpolation=pil_torch_interpolation_mapping[numbers.resample],
    )


def _scale(numbers: Any, *, repeat: int) -> PixelScale:
    return PixelScale(
        mean=tuple(numbers.image_mean), std=tuple(numbers.image_std), factor=numbers.rescale_factor, repeat=repeat
    )
