"""What a list of examples holds, in numbers: media, text, and an estimate of tokens where nobody counted.

The estimate is that of `lengths.estimate`, for a quick look before a processor is at hand: with the numbers that are
assumed where none says others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from lading.media.geometry import smart_resize, smart_resize_clip
from lading.vlm import estimate as guess

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
    said = {"conversation": (), **example}
    media, guessed = guess.shown(said), guess.estimate(said, image_tokens=_image_tokens, video_tokens=_video_tokens)
    has_media = any(media.values())
    return {
        "n_images": media["image"],
        "n_videos": media["video"],
        "n_audios": media["audio"],
        "n_text_only": int(not has_media),
        "n_text_tokens": guessed.text,
        "n_media_tokens": guessed.media,
        "n_missing_text_tokens": int("input_ids" not in example and example.get("_text_tokens") is None),
        "n_missing_mm_inputs_meta": int(has_media and not example.get("mm_inputs_meta")),
    }


_image_tokens = partial(guess.image_tokens, numbers={}, resize=smart_resize)
_video_tokens = partial(guess.video_tokens, numbers={}, resize=smart_resize_clip)


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
