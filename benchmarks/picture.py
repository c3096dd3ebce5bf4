"""The picture: how many times better ours is, line by line, on a logarithmic scale, as SVG written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from benchmarks.result import Line
from benchmarks.table import shown

LEFT, WIDTH, RIGHT = 430, 420, 330
STEP = 30
REACHED, SHORT, PLAIN = "#2a7d4f", "#b3541e", "#5b6b7b"


def picture(lines: Sequence[Line], *, heading: str) -> str:
    """One bar for each line that has a ratio; the goal is a tick."""
    drawn = [line for line in lines if line.ratio is not None]
    most = max([10.0, *(max(line.ratio or 0.0, _goal(line) or 0.0) for line in drawn)])
    decades = math.ceil(math.log10(most))
    height = STEP * len(drawn) + 90
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}" '
        'font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="100%" height="100%" fill="white"/><text x="16" y="26" font-size="16">{escape(heading)}</text>',
        f'<text x="16" y="46" fill="{PLAIN}">times better than theirs (logarithmic); a tick marks the goal</text>',
        *[_grid(decade, decades, height) for decade in range(decades + 1)],
        *[_bar(line, 64 + STEP * place, decades) for place, line in enumerate(drawn)],
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(decade: int, decades: int, height: int) -> str:
    x = _x(10.0**decade, decades)
    return (
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="58" y2="{height - 22}" stroke="#d9dee3"/>'
        f'<text x="{x:.1f}" y="{height - 6}" text-anchor="middle" fill="{PLAIN}">{10**decade:,}×</text>'
    )


def _bar(line: Line, y: int, decades: int) -> str:
    ratio = line.ratio or 1.0
    start, stop = sorted((_x(1.0, decades), _x(ratio, decades)))
    colour = {True: REACHED, False: SHORT, None: PLAIN}[line.met]
    goal = _goal(line)
    tick = _x(goal, decades) if goal else None
    theirs = shown(line.theirs, line.figure.unit).split(" (")[0] if line.theirs else ""
    said = f"{ratio:.3g}×: {shown(line.ours, line.figure.unit).split(' (')[0]} against {theirs}"
    label = f"{line.title}: {line.figure.what}"
    mark = (
        f'<line x1="{tick:.1f}" x2="{tick:.1f}" y1="{y - 2}" y2="{y + 20}" stroke="black" stroke-width="2"/>'
        if tick is not None
        else ""
    )
    return (
        f'<text x="{LEFT - 10}" y="{y + 8}" text-anchor="end">{escape(label)}</text>'
        f'<text x="{LEFT - 10}" y="{y + 20}" text-anchor="end" font-size="10" fill="{PLAIN}">{escape(line.rival or "")}'
        f'</text><rect x="{start:.1f}" y="{y}" width="{max(stop - start, 1):.1f}" height="18" fill="{colour}"/>{mark}'
        f'<text x="{max(stop, tick or 0.0) + 8:.1f}" y="{y + 14}">{escape(said)}</text>'
    )


def _goal(line: Line) -> float | None:
    return line.goal.times if line.goal else None


def _x(ratio: float, decades: int) -> float:
    """Where a ratio stands; what is worse than a tenth stands at a tenth."""
    return LEFT + WIDTH * max(math.log10(max(ratio, 1e-9)), -1.0) / decades
