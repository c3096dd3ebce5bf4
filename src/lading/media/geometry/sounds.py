"""What sounds take up, and clips that are heard as well as seen: frames and sound in turn, each at its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lading.errors import Reason, SkipSample
from lading.media.audio import samples_at
from lading.media.geometry.clips import ClipGrid
from lading.records import AudioSize, Footprint, Size, VideoSize

Turn = tuple[bool, int]
"""Whether it is sound, and how many tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MelWindows:
    """Sounds as mel frames, a hundred of them to a window, each halved three times (the Qwen3-Omni kind)."""

    rate: int
    hop: int
    least: int
    """A sound needs more samples than this: half the transform, which reaches beyond its edges."""
    window: int = 100
    window_tokens: int = 13

    @classmethod
    def read(cls, processor: Any) -> MelWindows:
        """Take the numbers from a processor's feature extractor."""
        numbers = processor.feature_extractor
        return cls(rate=numbers.sampling_rate, hop=numbers.hop_length, least=numbers.n_fft // 2)

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What sounds of these lengths take up.

        >>> windows = MelWindows(rate=16_000, hop=160, least=200)
        >>> [footprint.runs for footprint in windows.footprints([AudioSize(samples=40_001, rate=16_000)])]
        [(33,)]
        """
        lengths = [samples_at(size, self.rate) for size in sizes if isinstance(size, AudioSize)]
        for length in lengths:
            if length <= self.least:
                raise SkipSample(
                    Reason.IMPOSSIBLE_SHAPE, found=f"a sound of {length} samples", wanted=f"more than {self.least}"
                )
        # Sounds of one sample are padded to the longest; a frame that has begun counts, except the longest's last.
        whole = max(lengths, default=0) // self.hop
        return [self._footprint(min(-(-length // self.hop), whole)) for length in lengths]

    def _footprint(self, frames: int) -> Footprint:
        whole, rest = divmod(frames, self.window)
        for _ in range(3):
            rest = (rest + 1) // 2
        return Footprint(kind="audio", runs=(whole * self.window_tokens + rest,), rows=frames)


@dataclass(frozen=True, kw_only=True, slots=True)
class SoundingClips:
    """Clips whose own sound track may stand between their frames (the Qwen3-Omni kind)."""

    clips: ClipGrid
    sounds: MelWindows
    tokens_per_second: float
    """A token of sound is this part of a second."""
    seen: str
    heard: str
    """The pads of frames and of sound."""
    opening: str
    closing: str
    """What frames the sound of a clip."""

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What clips of these sizes take up; those with a sound track, with it."""
        return [self._footprint(size) for size in sizes]

    def _footprint(self, size: Size) -> Footprint:
        assert isinstance(size, VideoSize)
        clip = self.clips.footprints([size])[0]
        if size.sound is None:
            return clip
        sound = self.sounds.footprints([size.sound])[0]
        steps, tokens = clip.grid[0], clip.runs[0]
        times = [step * clip.seconds * self.tokens_per_second for step in range(steps)]
        turns = interleave(times, tokens // steps, sound.runs[0])
        return replace(
            clip,
            runs=tuple(count for _, count in turns),
            heard=tuple(place for place, (audible, _) in enumerate(turns) if audible),
            text=self.opening + "".join(self.heard if audible else self.seen for audible, _ in turns) + self.closing,
            sound=sound,
        )


def interleave(times: Sequence[float], each: int, sounds: int) -> list[Turn]:
    """Frames of `each` tokens at their `times` among `sounds` tokens of sound, one for every unit of time.

    A frame goes before the first token of sound that is not earlier than it:

    >>> interleave([0.0, 2.5], each=4, sounds=5)
    [(False, 4), (True, 3), (False, 4), (True, 2)]
    """
    turns: list[Turn] = []
    done = 0
    for time in times:
        before = min(math.ceil(time), sounds)
        if before > done:
            turns.append((True, before - done))
            done = before
        if turns and not turns[-1][0]:
            turns[-1] = (False, turns[-1][1] + each)
        else:
            turns.append((False, each))
    return [*turns, (True, sounds - done)] if sounds > done else turns
