"""What sounds take up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lading.errors import Reason, SkipSample
from lading.media.audio import samples_at
from lading.records import AudioSize, Footprint, Size


@dataclass(frozen=True, kw_only=True, slots=True)
class MelWindows:
    """Sounds as mel frames, a hundred of them to a window, each halved three times (the Qwen3-Omni kind)."""

    rate: int
    hop: int
    window: int = 100
    window_tokens: int = 13

    @classmethod
    def read(cls, processor: Any) -> MelWindows:
        """Take the numbers from a processor's feature extractor."""
        return cls(rate=processor.feature_extractor.sampling_rate, hop=processor.feature_extractor.hop_length)

    def footprints(self, sizes: Sequence[Size]) -> list[Footprint]:
        """What sounds of these lengths take up.

        >>> windows = MelWindows(rate=16_000, hop=160)
        >>> [footprint.runs for footprint in windows.footprints([AudioSize(samples=40_001, rate=16_000)])]
        [(33,)]
        """
        return [self._footprint(size) for size in sizes]

    def _footprint(self, size: Size) -> Footprint:
        assert isinstance(size, AudioSize)
        frames = samples_at(size, self.rate) // self.hop
        if frames < 1:
            raise SkipSample(
                Reason.IMPOSSIBLE_SHAPE, found=f"a sound of {size.samples} samples", wanted=f"at least {self.hop}"
            )
        whole, rest = divmod(frames, self.window)
        for _ in range(3):
            rest = (rest + 1) // 2
        return Footprint(kind="audio", runs=(whole * self.window_tokens + rest,), rows=frames)
