"""What an example may cost, guessed before anything is tokenised or opened.

An example is a dict in the conversation form. What was worked out beforehand may stand beside the conversation:

    {"conversation": [{"role": "user", "content": [{"type": "image", "image": …}, {"type": "text", "text": "Who?"}]}],
     "_text_tokens": 41,                     # tokens of the text; else a third of its characters
     "_media_tokens": 128,                   # tokens of all media; else by their sizes
     "mm_inputs_meta": {"images_meta": [[height, width], …],
                        "videos_meta": [[total_frames, height, width, fps, duration], …]}}

The sizes may also be named `images`, `image_meta` or `image`, and so for videos. A medium whose size is not known
counts 500 tokens, and so does one whose size cannot be read. An example that is tokenised already has the length of its
`input_ids`. A chat template's own tokens are in none of these numbers, so they are too low more often than too high:
whoever must not overflow counts exactly (`lading count`, whose `--annotate` writes rows with exact numbers in them).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lading.errors import ConfigError, SkipSample, UnknownName
from lading.fields import MEDIA_KINDS, MediaKind

CHARACTERS_PER_TOKEN = 3
TOKENS_PER_MEDIUM = 500

IMAGE_NUMBERS: Mapping[str, float] = {
    "patch_size": 14,
    "merge_size": 2,
    "factor": 0,
    "min_pixels": 56 * 56,
    "max_pixels": 14 * 14 * 4 * 1280,
}
"""What a processor says about pictures, and what is assumed where it does not say it. `factor` is the side of a token
in pixels, which some say beside the other two: 0 stands for `patch_size` times `merge_size`."""
VIDEO_NUMBERS: Mapping[str, float] = {
    "patch_size": 16,
    "merge_size": 2,
    "factor": 0,
    "min_pixels": 128 * 128,
    "max_pixels": 16 * 16 * 2 * 2 * 2 * 6144,
    "temporal_patch_size": 2,
    "fps": 2.0,
    "min_frames": 4,
    "max_frames": 768,
    "pixels_per_frame": 0,
}
"""The same for clips. Their pixel bounds are shared by all frames, unless `pixels_per_frame` is 1."""

Size = Sequence[float]
Numbers = Mapping[str, Any]
MediumTokens = Callable[[Size], int]
"""The size of a medium → its tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate:
    """Tokens of the text and of the media of one example."""

    text: int
    media: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.text + self.media


def estimate(
    example: Mapping[str, Any], *, image_tokens: MediumTokens | None = None, video_tokens: MediumTokens | None = None
) -> Estimate:
    """What an example may cost. Media are counted by their sizes where the callables are given and sizes are known.

    >>> talk = {"conversation": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who is?"}]}]}
    >>> estimate(talk)
    Estimate(text=2, media=500)
    >>> estimate({**talk, "_text_tokens": 9, "mm_inputs_meta": {"images": [[28, 56]]}}, image_tokens=lambda size: 2)
    Estimate(text=9, media=2)
    """
    if "input_ids" in example:
        return Estimate(text=len(example["input_ids"]), media=0)
    parts = list(_parts(example))
    counted, media = example.get("_text_tokens"), example.get("_media_tokens")
    characters = sum(len(str(part.get("text") or "")) for part in parts if part.get("type", "text") == "text")
    return Estimate(
        text=characters // CHARACTERS_PER_TOKEN if counted is None else int(counted),
        media=_media(example, parts, image_tokens, video_tokens) if media is None else int(media),
    )


def shown(example: Mapping[str, Any]) -> dict[MediaKind, int]:
    """How many media of each kind an example shows.

    >>> shown({"conversation": [{"role": "user", "content": [{"type": "image_url", "image_url": "a.jpg"}]}]})
    {'image': 1, 'video': 0, 'audio': 0}
    """
    return _shown([] if "input_ids" in example else list(_parts(example)))


def image_tokens(size: Size, numbers: Numbers, resize: Callable[..., tuple[int, int]]) -> int:
    """Tokens of a picture of [height, width], by `resize(height, width, factor=…, min_pixels=…, max_pixels=…)`.

    >>> image_tokens([60, 90], {"patch_size": 14}, lambda height, width, **bounds: (56, 84))
    6
    """
    known = _numbers(numbers, IMAGE_NUMBERS, "image_cfg")
    factor = _factor(known)

    def count() -> int:
        height, width = (int(side) for side in size)
        return _cells(resize(height, width, factor=factor, **_bounds(known)), factor)

    return _or_guess(count)


def video_tokens(size: Size, numbers: Numbers, resize: Callable[..., tuple[int, int]]) -> int:
    """Tokens of a clip of [total_frames, height, width, fps, duration], by `resize(frames, height, width,
    temporal_factor=…, factor=…, min_pixels=…, max_pixels=…)`. Without `fps`, by the duration; without both, all frames.

    >>> video_tokens([60, 64, 96, 30.0, 2.0], {}, lambda frames, height, width, **bounds: (height, width))
    12
    """
    known = _numbers(numbers, VIDEO_NUMBERS, "video_cfg")
    factor, temporal = _factor(known), int(known["temporal_patch_size"])

    def count() -> int:
        frames = _frames([float(number) for number in size], known)
        bounds = _bounds(known, frames if known["pixels_per_frame"] else 1)
        height, width = int(size[1]), int(size[2])
        resized = resize(max(frames, temporal), height, width, temporal_factor=temporal, factor=factor, **bounds)
        return math.ceil(frames / temporal) * _cells(resized, factor)

    return _or_guess(count)


def _frames(size: Sequence[float], known: Mapping[str, float]) -> int:
    """Frames that a processor takes of a clip: a whole number of temporal patches."""
    total, fps, duration = size[0], *(*size[3:5], 0.0, 0.0)[:2]
    seconds = total / fps if fps > 0 else duration
    wanted = seconds * known["fps"] if seconds > 0 else total
    frames = min(max(wanted, known["min_frames"]), known["max_frames"], total)
    return max(1, int(frames // known["temporal_patch_size"] * known["temporal_patch_size"]))


def _factor(known: Mapping[str, float]) -> int:
    return int(known["factor"] or known["patch_size"] * known["merge_size"])


def _bounds(known: Mapping[str, float], times: int = 1) -> dict[str, int]:
    return {name: times * int(known[name]) for name in ("min_pixels", "max_pixels")}


def _cells(sides: tuple[int, int], factor: int) -> int:
    return (sides[0] // factor) * (sides[1] // factor)


def _or_guess(count: Callable[[], int]) -> int:
    try:
        return count()
    except (SkipSample, TypeError, ValueError, IndexError):
        # It will be refused by name when it is opened; until then it must not stop the planning of the others.
        return TOKENS_PER_MEDIUM


def _numbers(given: Numbers, defaults: Mapping[str, float], where: str) -> Mapping[str, float]:
    for name in given:
        if name not in defaults:
            raise UnknownName(kind="number", name=name, known=defaults, where=where)
    return {**defaults, **given}


def _parts(example: Any) -> Iterator[Mapping[str, Any]]:
    turns = example.get("conversation") if isinstance(example, Mapping) else None
    if not isinstance(turns, Sequence) or isinstance(turns, str):
        raise ConfigError(
            found=f"a {type(example).__name__} with {', '.join(map(str, example))[:80] or 'no keys'}",
            wanted="an example: a dict with a list of turns under 'conversation'",
            where="estimate",
        )
    for turn in turns:
        content = turn.get("content") or ()
        yield from [{"type": "text", "text": content}] if isinstance(content, str) else content


def _media(
    example: Mapping[str, Any],
    parts: Sequence[Mapping[str, Any]],
    image_tokens: MediumTokens | None,
    video_tokens: MediumTokens | None,
) -> int:
    sizes = example.get("mm_inputs_meta") or {}
    counters = {"image": image_tokens, "video": video_tokens}
    tokens = 0
    for kind, count in _shown(parts).items():
        counter = counters.get(kind)
        known = _sizes(sizes, kind) if counter else []
        tokens += sum(map(counter, known)) if counter else 0
        tokens += TOKENS_PER_MEDIUM * max(0, count - len(known))
    return tokens


def _shown(parts: Sequence[Mapping[str, Any]]) -> dict[MediaKind, int]:
    return {kind: sum(part.get("type") in (kind, f"{kind}_url") for part in parts) for kind in MEDIA_KINDS}


def _sizes(sizes: Mapping[str, Any], kind: MediaKind) -> list[Any]:
    """Sizes of one kind; the key is named in several ways out there."""
    names = (f"{kind}s_meta", f"{kind}_meta", f"{kind}s", kind)
    return list(next((sizes[name] for name in names if sizes.get(name)), ()))
