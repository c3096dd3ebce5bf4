"""What ranks have to do in a few steps, planned in three ways: `python -m docs.figures.balance` writes `balance.svg`.

The lengths are made here: half text, half conversations with one to six pictures. The costs and the places of the packs
are those of `lading.plan`; nothing is drawn that was not planned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from docs.figures.drawing import box, legend, line, svg, text, write
from lading.plan import make_plan
from lading.plan.costs import straggler_factor
from lading.records import LengthTable, PackPlan

SAMPLES, PACK_SIZE, RANKS, STEPS = 6000, 8192, 8, 6
WAYS = {
    "packs filled in turn, steps shuffled": ("first_fit", "shuffled"),
    "packs filled in turn, steps sorted by all work": ("first_fit", "cost_sorted"),
    "lading: packs dealt, and placed by all three costs": ("balanced", "balanced"),
}
PANELS = {"all work": "one", "attention": "two", "vision": "three"}
LEFT, TOP, HEIGHT, BAR, GAP, ROW, COLUMN = 16, 84, 92, 4.6, 9.0, 158, 306


def lengths() -> LengthTable:
    """A corpus that nobody saw."""
    random = np.random.default_rng(7)
    words = random.lognormal(np.log(450), 0.9, SAMPLES).astype(np.int64).clip(24, 6000)
    pictures = random.integers(1, 7, SAMPLES) * (random.random(SAMPLES) < 0.5)
    patches = pictures * 1600
    return LengthTable.of(
        tokens=(words + patches // 4).clip(1, PACK_SIZE), patches=patches, patch_pairs=pictures * 1600 * 1600
    )


def plans(table: LengthTable) -> dict[str, PackPlan]:
    """The same corpus, planned in every way."""
    return {
        name: make_plan(table, pack_size=PACK_SIZE, world_size=RANKS, algorithm=algorithm, placing=placing)
        for name, (algorithm, placing) in WAYS.items()
    }


def costs_of(plan: PackPlan) -> dict[str, NDArray[np.float64]]:
    """[steps, ranks] costs for each panel."""
    costs = plan.costs.astype(np.float64)[plan.order]
    return {"all work": costs.sum(axis=2), "attention": costs[..., 1], "vision": costs[..., 2]}


def picture() -> str:
    """The ways one below the other, the costs side by side; a cost has one scale for all ways."""
    made = {name: costs_of(plan) for name, plan in plans(lengths()).items()}
    parts = legend(LEFT, 22, {"one": "all work", "two": "attention", "three": "vision", "idle": "waiting"})
    parts.append(
        text(
            LEFT,
            48,
            f"A bar for each of {RANKS} ranks, in the first {STEPS} steps. Below: how much longer",
            faint=True,
            size=15,
        )
    )
    parts.append(
        text(LEFT, 65, "all steps take than if the ranks had equal shares of this kind of work.", faint=True, size=15)
    )
    for column, (panel, colour) in enumerate(PANELS.items()):
        scale = HEIGHT / max(costs[panel][:STEPS].max() for costs in made.values())
        for row, (way, costs) in enumerate(made.items()):
            x, y = LEFT + column * COLUMN, TOP + row * ROW
            if not column:
                parts.append(text(x, y + 12, way, size=15))
            for step in range(STEPS):
                left = x + step * (RANKS * BAR + GAP)
                parts += _step(costs[panel][step], x=left, bottom=y + 24 + HEIGHT, scale=scale, colour=colour)
            longer = 100 * (straggler_factor(costs[panel]) - 1)
            parts.append(text(x, y + 43 + HEIGHT, f"{panel}: {longer:.1f} % longer", size=15))
    title = f"Work of {RANKS} ranks in {STEPS} steps, planned in three ways"
    return svg(LEFT + len(PANELS) * COLUMN, TOP + len(made) * ROW, title=title, parts=parts)


def _step(costs: NDArray[np.float64], *, x: float, bottom: float, scale: float, colour: str) -> list[str]:
    """The ranks of a step side by side, each as high as its work; above it what it waits for the slowest."""
    high = costs.max() * scale
    parts = []
    for rank, cost in enumerate(costs):
        left, own = x + rank * BAR, cost * scale
        parts.append(box(left, bottom - own, BAR - 0.8, own, colour))
        parts.append(box(left, bottom - high, BAR - 0.8, high - own, "idle"))
    return [*parts, line(x, bottom, x + RANKS * BAR - 0.8, bottom)]


if __name__ == "__main__":
    write("balance.svg", picture())
