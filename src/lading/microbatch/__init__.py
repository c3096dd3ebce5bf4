"""Batch → pipeline-parallel pieces, by the rows and counts the batch carries: the exact inverse of collating."""

from lading.microbatch.cut import cut_batch

__all__ = ["cut_batch"]
