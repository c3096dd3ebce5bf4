"""Small pictures as SVG text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT = 560, 140


def histogram(values: NDArray[np.int64], *, bins: int = 40) -> str:
    """Bars of how many values fall into each of `bins` equal ranges."""
    if not len(values):
        return "<p>nothing to show</p>"
    counts, edges = np.histogram(values, bins=bins)
    top, wide = max(1, int(counts.max())), WIDTH / bins
    bars = "".join(
        f'<rect x="{place * wide:.1f}" y="{HEIGHT - HEIGHT * count / top:.1f}" width="{wide - 1:.1f}"'
        f' height="{HEIGHT * count / top:.1f}">'
        f"<title>{edges[place]:.0f} to {edges[place + 1]:.0f}: {count}</title></rect>"
        for place, count in enumerate(counts.tolist())
    )
    return _svg(bars) + f'<p class="axis"><span>{edges[0]:.0f}</span><span>{edges[-1]:.0f}</span></p>'


def curve(values: Sequence[float]) -> str:
    """A line through the values, from 0 to their largest."""
    if len(values) < 2:
        return "<p>nothing to show</p>"
    top = max(values) or 1.0
    points = " ".join(
        f"{WIDTH * place / (len(values) - 1):.1f},{HEIGHT - HEIGHT * value / top:.1f}"
        for place, value in enumerate(values)
    )
    return _svg(f'<polyline points="{points}"/>')


def strips(packs: Sequence[Sequence[int]], pack_size: int) -> str:
    """One bar a pack, its documents side by side."""
    high = 10
    bars = []
    for row, documents in enumerate(packs):
        left = 0.0
        for place, tokens in enumerate(documents):
            wide = WIDTH * tokens / pack_size
            bars.append(
                f'<rect class="document{place % 2}" x="{left:.1f}" y="{row * high}" width="{max(0.5, wide - 0.5):.1f}"'
                f' height="{high - 2}"><title>{tokens} tokens</title></rect>'
            )
            left += wide
    return _svg("".join(bars), height=high * len(packs))


def _svg(inside: str, height: int = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{inside}</svg>'
