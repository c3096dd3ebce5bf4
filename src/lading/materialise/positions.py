"""Where each token of a document stands, exactly as its model would number the document alone.

Two kinds: plain (0, 1, 2, …), and the three-way positions of the Qwen-VL models, where text advances all three and a
picture spreads over height and width. The three-way kind carries a fourth row in front, the plain position, because
that is where transformers looks for document borders.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lading.records import Document, MediumSpan


@dataclass(frozen=True, kw_only=True, slots=True)
class ThreeWay:
    """The numbers three-way positions need."""

    merge: int
    tokens_per_second: float


def document_positions(document: Document, three_way: ThreeWay | None) -> Tensor:
    """Positions of one document: [T], or [4, T] (plain, time, height, width).

    >>> from lading.records import SampleKey
    >>> talk = Document(key=SampleKey(index=0, source="s", where="w"), tokens=3)
    >>> document_positions(talk, ThreeWay(merge=2, tokens_per_second=2.0)).tolist()
    [[0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 1, 2]]
    """
    plain = torch.arange(document.tokens)
    if three_way is None:
        return plain
    return torch.cat([plain[None], torch.from_numpy(_three_way(document, three_way))])


def _three_way(document: Document, numbers: ThreeWay) -> NDArray[np.int64]:
    positions = np.empty((3, document.tokens), dtype=np.int64)
    token = position = 0
    for span in document.media:
        for (start, stop), grid in zip(span.runs, _grids(span), strict=True):
            positions[:, token:start] = np.arange(position, position + start - token)
            position += start - token
            positions[:, start:stop] = _grid_positions(grid, span, numbers) + position
            position += max(grid[1], grid[2]) // numbers.merge
            token = stop
    positions[:, token:] = np.arange(position, position + document.tokens - token)
    return positions


def _grids(span: MediumSpan) -> list[tuple[int, int, int]]:
    """One grid a run: the whole clip, or, where frames have text between them, one frame each."""
    t, h, w = span.footprint.grid
    return [(t // len(span.runs), h, w)] * len(span.runs)


def _grid_positions(grid: tuple[int, int, int], span: MediumSpan, numbers: ThreeWay) -> NDArray[np.int64]:
    t, h, w = grid[0], grid[1] // numbers.merge, grid[2] // numbers.merge
    # float32, because the models multiply a float32 tensor here, and its rounding decides between neighbours.
    interval = (
        np.float32(numbers.tokens_per_second * span.footprint.seconds) if span.footprint.seconds else np.float32(1)
    )
    times = (np.arange(t).astype(np.float32) * interval).astype(np.int64)
    return np.stack(np.meshgrid(times, np.arange(h), np.arange(w), indexing="ij")).reshape(3, -1)
