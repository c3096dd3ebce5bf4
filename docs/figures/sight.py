"""What the tokens of a pack see: `python -m docs.figures.sight` writes `sight.svg`.

The mask is the one that `attention="mask"` puts into a batch, made by the loader from a toy corpus.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from docs.figures.drawing import box, line, svg, text, write
from lading import Loader, toy

CELL, LEFT, TOP, MOST = 1.4, 16, 40, 256


def mask() -> tuple[torch.Tensor, list[int]]:
    """Who sees whom in a pack [T, T], and where its documents begin."""
    with tempfile.TemporaryDirectory() as folder:
        meta = toy.write_corpus(Path(folder), samples=24)
        loader = Loader(meta, "toy:qwen2_5_vl", pack_size=MOST, attention="mask", cache=False)
        batch = max(loader, key=lambda own: len(own.rows[0]))
    seen = batch.tensor("attention_mask")[0, 0] == 0
    starts = [0]
    for document in batch.rows[0]:
        starts.append(starts[-1] + document.tokens)
    return seen[: starts[-1], : starts[-1]], starts


def picture() -> str:
    """A row for each token, and a bar where it looks."""
    seen, starts = mask()
    size = len(seen) * CELL
    parts = [text(LEFT, 20, f"{len(starts) - 1} documents in a pack: a row for each token, coloured where it looks")]
    parts.append(box(LEFT, TOP, size, size, "idle"))
    for row, looks in enumerate(seen):
        places = torch.nonzero(looks).flatten().tolist()
        first, last = places[0], places[-1]
        colour = ("one", "three", "four", "two")[sum(row >= start for start in starts[1:-1]) % 4]
        parts.append(box(LEFT + first * CELL, TOP + row * CELL, (last - first + 1) * CELL, CELL, colour))
        if len(places) != last - first + 1:
            raise ValueError("a token that looks at two places with something between is not drawn right")
    for start in starts[1:-1]:
        at = start * CELL
        parts += [line(LEFT, TOP + at, LEFT + size, TOP + at), line(LEFT + at, TOP, LEFT + at, TOP + size)]
    parts.append(text(LEFT + size + 14, TOP + 16, "grey: never seen; what lies between", faint=True))
    parts.append(text(LEFT + size + 14, TOP + 34, "documents: with varlen not even computed", faint=True))
    return svg(round(LEFT + size + 310), round(TOP + size + 16), title="Who sees whom in a pack", parts=parts)


if __name__ == "__main__":
    write("sight.svg", picture())
