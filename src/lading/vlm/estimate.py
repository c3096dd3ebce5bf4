"""What an example may cost, and what a list of examples holds, guessed before anything is tokenised or opened.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lading.errors import ConfigError, SkipSample, UnknownName
from lading.fields import MEDIA_KINDS, MediaKind
from lading.media.geometry import smart_resize, smart_resize_clip

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

MediumTokens = Callable[[Sequence[float]], int]
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

    >>> turn = {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who is?"}]}
    >>> example = {"conversation": [turn]}
    >>> estimate(example)
    Estimate(text=2, media=500)
    >>> estimate({**example, "_text_tokens": 9, "mm_inputs_meta": {"images": [[28, 56]]}}, image_tokens=lambda size: 2)
    Estimate(text=9, media=2)
    """
    if "input_ids" in example:
        return Estimate(text=len(example["input_ids"]), media=0)
    parts = list(_parts(example))
    counted, media = example.get("_text_tokens"), example.get("_media_tokens")
    counters = {"image": image_tokens, "video": video_tokens}
    characters = sum(len(str(part.get("text") or "")) for part in parts if part.get("type", "text") == "text")
    return Estimate(
        text=characters // CHARACTERS_PER_TOKEN if counted is None else int(counted),
        media=_media(example, parts, counters) if media is None else int(media),
    )


def image_tokens(
    img_meta: Sequence[float], image_cfg: Mapping[str, Any], resize: Callable[..., tuple[int, int]] = smart_resize
) -> int:
    """Tokens of a picture of [height, width]; `image_cfg` has some of `IMAGE_NUMBERS`.

    `resize(height, width, factor=…, min_pixels=…, max_pixels=…)` gives the sides that a processor would give it.

    >>> image_tokens([56, 84], {"patch_size": 14, "merge_size": 2})
    6
    """
    known = _numbers(image_cfg, IMAGE_NUMBERS, "image_cfg")
    factor = int(known["factor"] or known["patch_size"] * known["merge_size"])
    try:
        height, width = (int(side) for side in img_meta)
        sides = resize(
            height, width, factor=factor, min_pixels=int(known["min_pixels"]), max_pixels=int(known["max_pixels"])
        )
    except (SkipSample, TypeError, ValueError):
        # It will be refused by name when it is opened; until then it must not stop the planning of the others.
        return TOKENS_PER_MEDIUM
    return (sides[0] // factor) * (sides[1] // factor)


def video_tokens(
    vid_meta: Sequence[float], video_cfg: Mapping[str, Any], resize: Callable[..., tuple[int, int]] = smart_resize_clip
) -> int:
    """Tokens of a clip of [total_frames, height, width, fps, duration]; `video_cfg` has some of `VIDEO_NUMBERS`.

    Without `fps`, the frames follow from the duration; without both, all are taken. `resize` is called as for a
    picture, with the frames in front and `temporal_factor=…`.

    >>> video_tokens([60, 64, 96, 30.0, 2.0], {"fps": 1.0})
    12
    """
    known = _numbers(video_cfg, VIDEO_NUMBERS, "video_cfg")
    factor, temporal = (
        int(known["factor"] or known["patch_size"] * known["merge_size"]),
        int(known["temporal_patch_size"]),
    )
    try:
        frames = _frames([float(number) for number in vid_meta], known)
        times = frames if known["pixels_per_frame"] else 1
        bounds = {name: times * int(known[name]) for name in ("min_pixels", "max_pixels")}
        height, width = int(vid_meta[1]), int(vid_meta[2])
        sides = resize(max(frames, temporal), height, width, temporal_factor=temporal, factor=factor, **bounds)
    except (SkipSample, TypeError, ValueError, IndexError):
        return TOKENS_PER_MEDIUM
    return math.ceil(frames / temporal) * (sides[0] // factor) * (sides[1] // factor)


def _frames(size: Sequence[float], known: Mapping[str, float]) -> int:
    """Frames that a processor takes of a clip: a whole number of temporal patches."""
    total, fps, duration = size[0], *(*size[3:5], 0.0, 0.0)[:2]
    seconds = total / fps if fps > 0 else duration
    wanted = seconds * known["fps"] if seconds > 0 else total
    frames = min(max(wanted, known["min_frames"]), known["max_frames"], total)
    return max(1, int(frames // known["temporal_patch_size"] * known["temporal_patch_size"]))


def _numbers(given: Mapping[str, Any], defaults: Mapping[str, float], where: str) -> Mapping[str, float]:
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


def _count_media(parts: Sequence[Mapping[str, Any]]) -> dict[MediaKind, int]:
    return {kind: sum(part.get("type") in (kind, f"{kind}_url") for part in parts) for kind in MEDIA_KINDS}


def _media(
    example: Mapping[str, Any], parts: Sequence[Mapping[str, Any]], counters: Mapping[str, MediumTokens | None]
) -> int:
    """Tokens of all media: by their sizes where these and a counter of their kind are known, else a guess for each."""
    sizes = example.get("mm_inputs_meta") or {}
    tokens = 0
    for kind, count in _count_media(parts).items():
        counter, known = counters.get(kind), ()
        if counter is not None:
            # Out there the key is named in several ways.
            names = (f"{kind}s_meta", f"{kind}_meta", f"{kind}s", kind)
            known = next((sizes[name] for name in names if sizes.get(name)), ())
            tokens += sum(map(counter, known))
        tokens += TOKENS_PER_MEDIUM * max(0, count - len(known))
    return tokens


def collect_stats(examples: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Images, videos, sounds, text-only samples and an estimate of tokens; `n_missing_…` say for how many examples they
    were guessed. Media are counted by the numbers that are assumed where no processor says others.

    >>> turn = {"role": "user", "content": [{"type": "image", "image": "a.jpg"}, {"type": "text", "text": "Who is?"}]}
    >>> stats = collect_stats([{"conversation": [turn]}])
    >>> stats["n_images"], stats["n_text_tokens"], stats["n_media_tokens"]
    (1, 2, 500)
    """
    by_size = {
        "image_tokens": partial(image_tokens, image_cfg={}),
        "video_tokens": partial(video_tokens, video_cfg={}),
    }
    totals = dict.fromkeys(STATS, 0)
    for given in examples:
        example = {"conversation": (), **given}
        guessed = estimate(example, **by_size)
        media = _count_media([] if "input_ids" in example else list(_parts(example)))
        has_media = any(media.values())
        for kind, count in media.items():
            totals[f"n_{kind}s"] += count
        totals["n_text_only"] += not has_media
        totals["n_text_tokens"] += guessed.text
        totals["n_media_tokens"] += guessed.media
        totals["n_missing_text_tokens"] += "input_ids" not in example and example.get("_text_tokens") is None
        totals["n_missing_mm_inputs_meta"] += has_media and not example.get("mm_inputs_meta")
    return totals


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
    names = {"n_images": "images", "n_videos": "videos", "n_audios": "audios", "n_text_only": "text only"}
    counts = [f"{stats[name]} {word}" for name, word in names.items() if stats.get(name)]
    tokens = stats.get("n_text_tokens", 0) + stats.get("n_media_tokens", 0)
    return "  " + ", ".join([*counts, f"about {tokens} tokens"]) if stats else ""
