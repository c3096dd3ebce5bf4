"""What a step of training computes that is of use: multiplications of real documents, counted from the shape alone.

Padding, recomputation and attention across documents are work, but not of use: they are in the time and not in here.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.gpu.shapes import Shape
from lading.records import Batch, Document

FORWARD_AND_BACK = 3
"""A backward pass costs two forward passes."""


def batch_flops(batch: Batch, shape: Shape) -> float:
    """Forward and backward, of all documents of a batch."""
    documents = [document for row in batch.rows for document in row]
    return FORWARD_AND_BACK * sum(language_flops(own.tokens, shape) + vision_flops(own, shape) for own in documents)


def language_flops(tokens: int, shape: Shape) -> float:
    """The forward pass of one document: its matrices, and every token's look at those before it."""
    inner, keys = shape.heads * shape.head_size, shape.key_heads * shape.head_size
    layer = shape.hidden * (2 * inner + 2 * keys + 3 * shape.between)
    weights = shape.layers * layer + shape.hidden * shape.vocabulary
    looks = shape.layers * 2 * tokens * (tokens + 1) * inner
    return 2.0 * weights * tokens + looks


def vision_flops(document: Document, shape: Shape) -> float:
    """The forward pass of a document's pictures."""
    return sum(picture_flops(footprint.grid, shape) for footprint in document.footprints("image"))


def picture_flops(grid: tuple[int, int, int], shape: Shape) -> float:
    """The forward pass of one picture of (1, height, width) patches."""
    patches = grid[0] * grid[1] * grid[2]
    hidden, merged = shape.vision_hidden, shape.vision_hidden * shape.merge**2
    layer = hidden * (4 * hidden + 3 * shape.vision_between)
    weights = shape.vision_layers * layer + 3 * shape.frames * shape.patch**2 * hidden
    merger = (merged * merged + merged * shape.hidden) / shape.merge**2
    full = len(shape.full_layers)
    looks = full * patches**2 + (shape.vision_layers - full) * sum(size**2 for size in window_sizes(grid, shape))
    return 2.0 * (weights + merger) * patches + 4.0 * looks * hidden


def window_sizes(grid: tuple[int, int, int], shape: Shape) -> Iterable[int]:
    """Patches in each window of a picture; those at its edges are smaller."""
    side = shape.window // shape.patch
    heights, widths = (_steps(length, side) for length in grid[1:])
    return [grid[0] * height * width for height in heights for width in widths]


def _steps(length: int, side: int) -> list[int]:
    """Steps of `side` along a length, the last one shorter.

    >>> _steps(20, 8)
    [8, 8, 4]
    """
    return [min(side, length - start) for start in range(0, length, side)]
