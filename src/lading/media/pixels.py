"""Media → the tensors a model is fed, by the processor's own classes.

What they give is checked against the footprints that were counted: a difference would put pixels of one picture under
the tokens of another, so it is an error of ours, never passed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lading.errors import ExactnessError
from lading.fields import Field, MediaKind
from lading.media import audio, image, video
from lading.media.probe import metadata
from lading.records import Footprint, MediaPart
from lading.tensors import join

if TYPE_CHECKING:
    from torch import Tensor

    from lading.family import TensorMaker

Media = list[tuple[MediaPart, Footprint]]


def patch_tensors(
    processor: Any,
    text: str,
    parts: Sequence[MediaPart],
    footprints: Sequence[Footprint],
    *,
    clip_pixels: Mapping[str, int] | None = None,
    seconds: str | None = "second_per_grid_ts",
) -> dict[str, Any]:
    """Flat patches of pictures and clips (the Qwen-VL kind), by the image and video processors alone.

    `seconds` names the tensor that holds how much time a patch of a clip spans, if the model takes one.
    """
    import torch

    del text
    tensors: dict[str, Any] = {}
    if pictures := of_kind("image", parts, footprints):
        made = processor.image_processor(images=[image.decode(part) for part, _ in pictures], return_tensors="pt")
        tensors |= {name: made[name] for name in ("pixel_values", "image_grid_thw")}
        _check_grids("image", tensors["image_grid_thw"].tolist(), pictures)
    if clips := of_kind("video", parts, footprints):
        frames = [clip_frames(part, footprint) for part, footprint in clips]
        bounds: dict[str, Any] = {} if clip_pixels is None else {"size": dict(clip_pixels)}
        if getattr(processor.video_processor, "cap_pixels_per_frame", True) is None:
            # What `None` means; said outright, transformers does not warn about it, with or without clips in a corpus.
            bounds["cap_pixels_per_frame"] = False
        made = processor.video_processor(videos=frames, do_sample_frames=False, return_tensors="pt", **bounds)
        tensors |= {name: made[name] for name in ("pixel_values_videos", "video_grid_thw")}
        _check_grids("video", tensors["video_grid_thw"].tolist(), clips)
        if seconds is not None:
            tensors[seconds] = torch.tensor([footprint.seconds for _, footprint in clips], dtype=torch.float32)
    return tensors


def patch_and_sound_tensors(
    processor: Any,
    text: str,
    parts: Sequence[MediaPart],
    footprints: Sequence[Footprint],
    *,
    clip_pixels: Mapping[str, int],
    seconds: str,
    sounds: TensorMaker,
) -> dict[str, Any]:
    """Flat patches and mel frames (the Qwen3-Omni kind)."""
    tensors = patch_tensors(processor, text, parts, footprints, clip_pixels=clip_pixels, seconds=seconds)
    return tensors | sounds(processor, text, parts, footprints)


def sound_tensors(
    processor: Any,
    text: str,
    parts: Sequence[MediaPart],
    footprints: Sequence[Footprint],
    *,
    fields: Mapping[str, Field],
) -> dict[str, Any]:
    """Mel frames of all that is heard; `fields` is the family's table, which says how sounds are joined."""
    del text
    rate = sampling_rate(processor)
    # In reading order: the sounds of a sample listened to together, as its processor does, and the sound track of each
    # clip by itself.
    sounds = of_kind("audio", parts, footprints)
    together = iter(_listened(processor, [audio.decode(part, rate) for part, _ in sounds], [own for _, own in sounds]))
    heard: list[dict[str, Tensor]] = []
    for part, footprint in zip(parts, footprints, strict=True):
        if part.kind == "audio":
            heard.append(next(together))
        elif footprint.sound is not None:
            heard += _listened(processor, [video.decode_sound(part, rate)], [footprint.sound])
    return join(heard, fields) if heard else {}


def _listened(
    processor: Any, sounds: list[NDArray[np.float32]], footprints: Sequence[Footprint]
) -> list[dict[str, Tensor]]:
    if not sounds:
        return []
    made = processor.feature_extractor(
        sounds,
        sampling_rate=sampling_rate(processor),
        padding=True,
        truncation=False,
        return_attention_mask=True,
        return_tensors="pt",
    )
    rows, wanted = made["attention_mask"].sum(-1).tolist(), [footprint.rows for footprint in footprints]
    if rows != wanted:
        raise ExactnessError(
            found=f"{rows} rows of audio from the processor",
            wanted=f"{wanted}, as counted from the headers",
            consequence="tokens and features would not match",
        )
    features, masks = made["input_features"], made["attention_mask"]
    return [
        {"input_features": features[place : place + 1], "feature_attention_mask": masks[place : place + 1]}
        for place in range(len(sounds))
    ]


def processor_tensors(
    processor: Any,
    text: str,
    parts: Sequence[MediaPart],
    footprints: Sequence[Footprint],
    *,
    nested: bool = True,
) -> dict[str, Any]:
    """Whatever the whole processor makes of the sample: right for any family, at the price of tokenising again.

    Pictures are `nested` by sample, as transformers' own `apply_chat_template` hands them over: some processors show
    several pictures of one sample otherwise than pictures of several samples, and few take no nesting.
    """
    pictures = of_kind("image", parts, footprints)
    clips = of_kind("video", parts, footprints)
    sounds = of_kind("audio", parts, footprints)
    inputs: dict[str, Any] = {}
    if pictures:
        decoded = [image.decode(part) for part, _ in pictures]
        inputs["images"] = [decoded] if nested else decoded
    if clips:
        inputs["videos"] = [clip_frames(part, footprint) for part, footprint in clips]
        inputs["video_metadata"] = [metadata(video.measure(part), footprint.frames) for part, footprint in clips]
        inputs["do_sample_frames"] = False
    if sounds:
        rate = sampling_rate(processor)
        inputs["audio"] = [audio.decode(part, rate) for part, _ in sounds]
        inputs["sampling_rate"] = rate
    first = processor.tokenizer.bos_token
    written = first is not None and text.startswith(first)
    return dict(processor(text=[text], return_tensors="pt", add_special_tokens=not written, **inputs))


def sampling_rate(processor: Any) -> int:
    """Samples a second that a processor wants; processors have two names for what listens."""
    return int((getattr(processor, "feature_extractor", None) or processor.audio_processor).sampling_rate)


def of_kind(kind: MediaKind, parts: Sequence[MediaPart], footprints: Sequence[Footprint]) -> Media:
    """The media of one kind with their footprints, in order."""
    return [pair for pair in zip(parts, footprints, strict=True) if pair[0].kind == kind]


def clip_frames(part: MediaPart, footprint: Footprint) -> Tensor:
    """The chosen frames as [frames, channels, height, width]: channels last could be misread for a narrow clip."""
    import torch

    return torch.from_numpy(video.decode(part, footprint.frames)).permute(0, 3, 1, 2)


def checked_ids(made: Mapping[str, Any], ids: NDArray[np.int64]) -> None:
    """Refuse tensors of a processor that tokenised the sample otherwise than we did."""
    if "input_ids" in made and made["input_ids"][0].tolist() != ids.tolist():
        raise ExactnessError(
            found=f"{len(made['input_ids'][0])} tokens from the processor",
            wanted=f"the same {len(ids)} as counted",
            consequence="tokens and pixels would not match",
        )


def _check_grids(kind: MediaKind, found: list[list[int]], media: Media) -> None:
    wanted = [list(footprint.grid) for _, footprint in media]
    if found != wanted:
        raise ExactnessError(
            found=f"{kind} grids {found} from the processor",
            wanted=f"{wanted}, as counted from the headers",
            consequence="tokens and pixels would not match",
        )
