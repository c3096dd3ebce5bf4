"""What clips take up that are heard as well as seen: frames and sound in turn, each at its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from lading.media.geometry.clips import ClipGrid
from lading.media.geometry.sounds import MelWindows
from lading.records import Footprint, Size, VideoSize

Turn = tuple[bool, int]
"""Whether it is sound, and how many tokens."""


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
