"""Media as byte patches, for processors of the Qwen-VL kind, and whether such patches are what a processor makes.

A processor of this kind makes floats of a picture and then puts those in order; here its bytes are, an eighth of the
memory for a still picture, whose one frame is not written down twice. The resized pixels are the processor's own, bit
by bit: the same kernel is asked, with the channels left where the decoder put them, which is faster.

`RawPatches.read` takes the numbers from a processor; `agrees` shows both the same noise, once. Only where their answers
are equal does a processor's own class go unasked from then on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import SkipSample
from lading.family import Geometry, RawMedia, TensorMaker
from lading.fields import MediaKind
from lading.media import image, measure, video
from lading.media.normalise import normalised
from lading.media.pixels import of_kind
from lading.records import Footprint, MediaPart, PixelScale

if TYPE_CHECKING:
    from torch import Tensor

Grid = tuple[int, int, int]
"""(t, h, w) in patches."""
TOLERANCE = 1e-5
"""How far our numbers may be from a processor's."""
NOISE = {"image": (1, 45, 61), "video": (4, 45, 61)}
"""Frames, height and width of what a processor is shown: sizes that no processor leaves as they are."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PatchCutter:
    """Resizes frames to a grid, and cuts them into its patches."""

    patch: int
    merge: int
    """Patches are ordered in squares of this side, which the model makes one token of."""
    depth: int
    """Frames in a patch: 1 for a still picture, however often the model sees it."""
    interpolation: Any
    """torchvision's name for how pixels are found between pixels."""

    def cut(self, media: Sequence[NDArray[np.uint8]], grids: Sequence[Grid]) -> Tensor:
        """The patches [P, 3 * depth * patch²] of media [frames, height, width, 3 or 4], one after the other.

        A fourth channel is left out.

        >>> from torchvision.transforms import InterpolationMode
        >>> cutter = PatchCutter(patch=2, merge=1, depth=1, interpolation=InterpolationMode.BICUBIC)
        >>> frames = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(1, 4, 4, 3)
        >>> cutter.cut([frames], [(1, 2, 2)])[0].tolist()
        [0, 3, 12, 15, 1, 4, 13, 16, 2, 5, 14, 17]
        """
        import torch

        rows = [time * high * wide for time, high, wide in grids]
        patches = np.empty((sum(rows), 3 * self.depth * self.patch**2), dtype=np.uint8)
        start = 0
        for frames, grid, count in zip(media, grids, rows, strict=True):
            self._write(self._resized(frames, grid), grid, patches[start : start + count])
            start += count
        return torch.from_numpy(patches)

    def _write(self, frames: NDArray[np.uint8], grid: Grid, patches: NDArray[np.uint8]) -> None:
        if self.depth == 1 and frames.shape[-1] == 4:
            self._write_pixels(frames, grid, patches)
            return
        (time, high, wide), side, merge = grid, self.patch, self.merge
        apart = frames.reshape(time, self.depth, high // merge, merge, side, wide // merge, merge, side, -1)
        # [t, h / merge, w / merge, merge, merge, channel, depth, patch, patch]; nothing moved yet
        ordered = apart[..., :3].transpose(0, 2, 5, 3, 6, 8, 1, 4, 7)
        np.copyto(patches.reshape(ordered.shape), ordered)

    def _write_pixels(self, frames: NDArray[np.uint8], grid: Grid, patches: NDArray[np.uint8]) -> None:
        """The same for still pictures of four bytes a pixel, in half the time: in long steps instead of single bytes.

        First whole pixels are put in order, a line of a patch at a time. A channel is then the lowest byte of every
        number of four bytes, if one begins to read at that channel.
        """
        (time, high, wide), side, merge = grid, self.patch, self.merge
        line = np.dtype((np.void, side * 4))
        lines = frames.reshape(time, high // merge, merge, side, wide // merge, merge, side * 4).view(line)[..., 0]
        ordered = lines.transpose(0, 1, 4, 2, 5, 3)
        size = frames.size
        pixels = np.empty(size + 2, dtype=np.uint8)  # the last channel's last number begins late
        np.copyto(pixels[:size].view(line).reshape(ordered.shape), ordered)
        planes = patches.reshape(len(patches), 3, side * side)
        for channel in range(3):
            begun = np.ndarray((len(patches), side * side), dtype="<u4", buffer=pixels, offset=channel)
            np.copyto(planes[:, channel], begun, casting="unsafe")

    def _resized(self, frames: NDArray[np.uint8], grid: Grid) -> NDArray[np.uint8]:
        import torch
        from torchvision.transforms.v2 import functional  # type: ignore[import-untyped]  # it has no types

        wanted = grid[0] * self.depth
        if wanted > len(frames):
            # The last patch of a clip may want more frames than there are: its last one stands again.
            frames = frames[np.minimum(np.arange(wanted), len(frames) - 1)]
        resized = functional.resize_image(
            torch.from_numpy(frames).permute(0, 3, 1, 2),
            [grid[1] * self.patch, grid[2] * self.patch],
            interpolation=self.interpolation,
            antialias=True,
        )
        found: NDArray[np.uint8] = resized.permute(0, 2, 3, 1).numpy()
        return found


@dataclass(frozen=True, kw_only=True, slots=True)
class RawPatches:
    """How pictures and clips become byte patches, and bytes numbers."""

    pictures: PatchCutter
    clips: PatchCutter
    scales: Mapping[str, PixelScale]
    seconds: str | None
    """The name of the tensor that holds how much time a patch of a clip spans, if the model takes one."""
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
    for kind in set(geometries) & set(NOISE):
        part = _noise(kind)
        try:
            footprints = geometries[kind].footprints([measure(part)])
        except SkipSample:
            # Somebody's own numbers leave no room for it; then there is nothing to go by.
            return False
        theirs = tensors(processor, "", [part], footprints)
        ours = normalised(raw.tensors(processor, "", [part], footprints), raw.scales)
        for name in set(raw.scales) & set(theirs):
            alike = ours[name].shape == theirs[name].shape
            if not alike or float((ours[name] - theirs[name]).abs().max()) > TOLERANCE:
                return False
    return True


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
