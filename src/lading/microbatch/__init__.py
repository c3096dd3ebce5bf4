"""Batch → microbatches for pipeline stages, by the field table of its family: the exact inverse of collating.

`cut_batch` gives the `Microbatch`es of a `Batch`; a `PipelineBatch` is a batch that knows how it is cut, and what each
rank passes to a schedule of torch.
"""

import warnings
from importlib import import_module

from lading.microbatch.cut import PipelineBatch, cut_batch, piece_sizes, piece_slices, piece_sums

__all__ = ["PipelineBatch", "cut_batch", "piece_sizes", "piece_slices", "piece_sums"]

_MOVED = {"row_axes": "lading.vlm.media_rows", "staged_media": "lading.vlm.pipeline_stage"}


def __getattr__(name: str) -> object:
    """Former names, which go with the next release."""
    if name not in _MOVED:
        raise AttributeError(f"module 'lading.microbatch' has no attribute {name!r}")
    warnings.warn(f"lading.microbatch.{name} is now {_MOVED[name]}.{name}", DeprecationWarning, stacklevel=2)
    moved: object = import_module(_MOVED[name]).__dict__[name]
    return moved
