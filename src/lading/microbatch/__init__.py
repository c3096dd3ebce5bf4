"""Batch → pipeline-parallel pieces, by the rows and counts the batch carries: the exact inverse of collating.

cut         a `Batch` → microbatches, for whoever runs them by hand
ownership   which row owns which media: the table of media inputs, and the counts
pieces      how many rows each microbatch gets, and on which axis they lie
chunks      media cut for the microbatches of a schedule
pipeline    what is asked of a pipeline
stage       those chunks at the first stage, for one call of the schedule
"""

from lading.microbatch.chunks import Chunks, chunk_documents, chunk_media, cut_media, move_media
from lading.microbatch.cut import cut_batch
from lading.microbatch.ownership import BOOKKEEPING, COUNT_KEYS, MEDIA_KEYS, MediaKey, Ownership
from lading.microbatch.pieces import piece_sizes, row_axes
from lading.microbatch.stage import staged_media

__all__ = [
    "BOOKKEEPING",
    "COUNT_KEYS",
    "MEDIA_KEYS",
    "Chunks",
    "MediaKey",
    "Ownership",
    "chunk_documents",
    "chunk_media",
    "cut_batch",
    "cut_media",
    "move_media",
    "piece_sizes",
    "row_axes",
    "staged_media",
]
