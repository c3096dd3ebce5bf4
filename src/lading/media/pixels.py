"""Decoded media → the tensors a model is fed, by the processor's own image and video classes.

What they give is checked against the footprint that was counted: a difference would put pixels of one picture under the
tokens of another, so it is an error of ours, never passed on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lading.errors import ExactnessError
from lading.fields import MediaKind
from lading.media import image, video
from lading.records import Footprint, MediaPart


def image_tensors(processor: Any, parts: Sequence[MediaPart], footprints: Sequence[Footprint]) -> dict[str, Any]:
    """Pixels of all pictures of a sample, in reading order."""
    made = processor.image_processor(images=[image.decode(part) for part in parts], return_tensors="pt")
    _check_grids("image", made["image_grid_thw"].tolist(), footprints)
    return dict(made)


def video_tensors(processor: Any, parts: Sequence[MediaPart], footprints: Sequence[Footprint]) -> dict[str, Any]:
    """Pixels of all clips of a sample. Frames were chosen when the clip was measured; none are sampled again here."""
    import torch

    clips = [video.decode(part, footprint.frames) for part, footprint in zip(parts, footprints, strict=True)]
    # [frames, channels, height, width]: with channels last, a clip three pixels wide would be misread.
    frames = [torch.from_numpy(clip).permute(0, 3, 1, 2) for clip in clips]
    made = dict(processor.video_processor(videos=frames, do_sample_frames=False, return_tensors="pt"))
    _check_grids("video", made["video_grid_thw"].tolist(), footprints)
    made["second_per_grid_ts"] = torch.tensor([footprint.seconds for footprint in footprints])
    return made


def _check_grids(kind: MediaKind, found: list[list[int]], footprints: Sequence[Footprint]) -> None:
    wanted = [list(footprint.grid) for footprint in footprints]
    if found != wanted:
        raise ExactnessError(
            found=f"{kind} grids {found} from the processor",
            wanted=f"{wanted}, as counted from the headers",
            consequence="tokens and pixels would not match",
        )
