"""An epoch that is carried on with other numbers of ranks: `python -m docs.figures.resume` writes `resume.svg`.

Planned and laid out by `lading.plan`: twelve packs on four ranks, interrupted after a step; on two ranks, interrupted
after two; the rest on three.
"""

from __future__ import annotations

import numpy as np

from docs.figures.drawing import box, legend, line, svg, text, write
from lading.plan import make_plan
from lading.plan.carry_on import EpochSegment, schedule
from lading.records import LengthTable

PACKS = 12
STRETCHES = (
    EpochSegment(world_size=4, steps=1),
    EpochSegment(world_size=2, steps=2),
    EpochSegment(world_size=3, steps=2),
)
CELL, GAP, LEFT, TOP = 44, 90, 70, 62
COLOURS = ("one", "three", "four")


def columns() -> list[tuple[int, list[int], int]]:
    """(stretch, packs of a step by rank, how many of them are repeats), step by step."""
    plan = make_plan(LengthTable.of(tokens=np.full(PACKS, 10)), pack_size=10, world_size=STRETCHES[0].world_size)
    found = []
    for number, stretch in enumerate(STRETCHES):
        laid_out = schedule(plan, STRETCHES[: number + 1])
        steps = laid_out.order[: stretch.steps].tolist()
        for step, packs in enumerate(steps):
            last = step == len(laid_out.order) - 1
            found.append((number, packs, laid_out.repeated if last else 0))
    return found


def picture() -> str:
    """Steps from left to right, ranks from top to bottom, and every pack's number in its place."""
    found = columns()
    most = max(stretch.world_size for stretch in STRETCHES)
    names = {colour: f"with {own.world_size} ranks" for colour, own in zip(COLOURS, STRETCHES, strict=True)}
    parts = [*legend(LEFT, 22, names | {"idle": "a repeat, to fill the last step"})]
    parts += [text(LEFT - 12, TOP + rank * CELL + 26, f"rank {rank}", anchor="end", faint=True) for rank in range(most)]
    x, before = float(LEFT), 0
    for number, packs, repeats in found:
        if number != before:
            parts += [line(x + GAP / 2 - 14, TOP - 12, x + GAP / 2 - 14, TOP + most * CELL + 4)]
            parts.append(
                text(x + GAP / 2 - 14, TOP + most * CELL + 22, "interrupted", anchor="middle", faint=True, size=12)
            )
            x += GAP - 20
        for rank, pack in enumerate(packs):
            y = TOP + rank * CELL
            repeat = rank >= len(packs) - repeats
            parts.append(box(x, y, CELL - 6, CELL - 6, "idle" if repeat else COLOURS[number]))
            label = text(x + CELL / 2 - 3, y + 25, str(pack), anchor="middle", size=15)
            parts.append(label if repeat else label.replace("<text ", '<text class="paper" ', 1))
        x, before = x + CELL, number
    return svg(
        max(640, round(x) + 40),
        TOP + most * CELL + 40,
        title="An epoch carried on with other numbers of ranks",
        parts=parts,
    )


if __name__ == "__main__":
    write("resume.svg", picture())
