"""What a list of examples holds, in numbers: media, text, and an estimate of tokens where nobody counted.

The estimate is for a quick look before a processor is at hand. Packing never uses it: it counts exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lading.errors import SkipSample
from lading.fields import MEDIA_KINDS, MediaKind
from lading.media.geometry import smart_resize, smart_resize_clip

CHARACTERS_PER_TOKEN = 3
TOKENS_PER_MEDIUM = 500
"""For a medium whose size nobody wrote down."""

_IMAGE = {"factor": 28, "min_pixels": 56 * 56, "max_pixels": 14 * 14 * 4 * 1280}
_CLIP = {"temporal_factor": 2, "factor": 32, "min_pixels": 128 * 128, "max_pixels": 16 * 16 * 2 * 2 * 2 * 6144}
_CLIP_FPS, _CLIP_FRAMES = 2.0, (4, 768)
"""The sizes of the best-known processors; `vlm.samplers` has the same as its defaults."""

STATS = (
    "n_images",
    "n_videos",
    "n_text_only",
    "n_text_tokens",
    "n_media_tokens",
    "n_missing_text_tokens",
    "n_missing_mm_inputs_meta",
    "n_audios",
)


def collect(examples: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Totals over examples; `n_missing_…` say for how many the tokens had to be guessed.

    >>> turn = {"role": "user", "content": [{"type": "image", "image": "a.jpg"}, {"type": "text", "text": "Who is?"}]}
    >>> stats = collect([{"conversation": [turn]}])
    >>> stats["n_images"], stats["n_text_tokens"], stats["n_media_tokens"]
    (1, 2, 500)
    """
    totals = dict.fromkeys(STATS, 0)
    for example in examples:
        for name, value in _one(example).items():
            totals[name] += value
    return totals


def _one(example: Mapping[str, Any]) -> dict[str, int]:
    parts = [part for turn in example.get("conversation", ()) for part in _parts(turn)]
    media: dict[MediaKind, int] = {kind: sum(part.get("type") == kind for part in parts) for kind in MEDIA_KINDS}
    characters = sum(len(str(part.get("text", ""))) for part in parts if part.get("type") == "text")
    counted, sizes = example.get("_text_tokens"), example.get("mm_inputs_meta")
    has_media = any(media.values())
    return {
        "n_images": media["image"],
        "n_videos": media["video"],
        "n_audios": media["audio"],
        "n_text_only": int(not has_media),
        "n_text_tokens": characters // CHARACTERS_PER_TOKEN if counted is None else int(counted),
        "n_media_tokens": _media_tokens(example, media),
        "n_missing_text_tokens": int(counted is None),
        "n_missing_mm_inputs_meta": int(has_media and not sizes),
    }


def _parts(turn: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = turn.get("content", ())
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _media_tokens(example: Mapping[str, Any], media: Mapping[MediaKind, int]) -> int:
    if "_media_tokens" in example:
        return int(example["_media_tokens"])
    images, videos = (_sizes(example.get("mm_inputs_meta") or {}, kind) for kind in ("image", "video"))
    unknown = max(0, media["image"] - len(images)) + max(0, media["video"] - len(videos)) + media["audio"]
    return sum(map(_image_tokens, images)) + sum(map(_clip_tokens, videos)) + TOKENS_PER_MEDIUM * unknown


def _sizes(meta: Mapping[str, Any], kind: str) -> list[Any]:
    """Sizes of one kind; the key is named in several ways out there."""
    names = (f"{kind}s_meta", f"{kind}_meta", f"{kind}s", kind)
    return list(next((meta[name] for name in names if meta.get(name)), ()))


def _image_tokens(size: Sequence[float]) -> int:
    """Tokens of a picture from [height, width]."""
    try:
        height, width = smart_resize(int(size[0]), int(size[1]), **_IMAGE)
    except SkipSample:
        return TOKENS_PER_MEDIUM
    return (height // _IMAGE["factor"]) * (width // _IMAGE["factor"])


def _clip_tokens(size: Sequence[float]) -> int:
    """Tokens of a clip from [frames, height, width, fps, duration]."""
    total, fps = int(size[0]), float(size[3]) if len(size) > 3 else 0.0
    wanted = int(total / fps * _CLIP_FPS) if fps > 0 else total
    frames = max(2, min(total, max(_CLIP_FRAMES[0], min(wanted, _CLIP_FRAMES[1]))) // 2 * 2)
    try:
        height, width = smart_resize_clip(frames, int(size[1]), int(size[2]), **_CLIP)
    except SkipSample:
        return TOKENS_PER_MEDIUM
    return frames // _CLIP["temporal_factor"] * (height // _CLIP["factor"]) * (width // _CLIP["factor"])


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """How long one data set took, and what came of it."""

    name: str
    seconds: float
    samples: int
    stats: Mapping[str, int] = field(default_factory=dict)


def summary(timings: Sequence[Timing], wall_time: float, total_samples: int, rank: int | None = None) -> str:
    """A table with a bar for each data set's share of the time.

    >>> print(summary([Timing(name="cats", seconds=3.0, samples=10), Timing(name="dogs", seconds=1.0, samples=5)],
    ...               wall_time=4.0, total_samples=15))
    loaded 15 samples of 2 data sets in 4.00 s
      cats  ███████████████        10 samples   3.00 s
      dogs  █████                   5 samples   1.00 s
    """
    who = "" if rank is None else f"rank {rank}: "
    width = max((len(timing.name) for timing in timings), default=0)
    spent = sum(timing.seconds for timing in timings) or 1.0
    lines = [f"{who}loaded {total_samples} samples of {len(timings)} data sets in {wall_time:.2f} s"]
    for timing in timings:
        bar = "█" * round(20 * timing.seconds / spent)
        line = f"  {timing.name:{width}}  {bar:20} {timing.samples:>4} samples {timing.seconds:>6.2f} s"
        lines.append((line + _details(timing.stats)).rstrip())
    return "\n".join(lines)


def _details(stats: Mapping[str, int]) -> str:
    shown = {"n_images": "images", "n_videos": "videos", "n_audios": "audios", "n_text_only": "text only"}
    counts = [f"{stats[name]} {word}" for name, word in shown.items() if stats.get(name)]
    tokens = stats.get("n_text_tokens", 0) + stats.get("n_media_tokens", 0)
    return "  " + ", ".join([*counts, f"about {tokens} tokens"]) if stats else ""
