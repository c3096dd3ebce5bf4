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
