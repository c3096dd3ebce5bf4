"""Exact token counts for a whole corpus, without decoding a pixel; counted once and kept.

    rows      what the rows of a file cost
    store     those numbers on disk: memory-mapped, sealed with a digest, never half-written
    folder    where that is
    estimate  what an example may cost, where nobody counted
    annotate  rows with their counts written into them, for whoever reads estimates

The counting itself is wired in `lading.loader.counting`: it needs a processor.
"""

from lading.lengths.rows import Counted, merge
from lading.lengths.store import Store

__all__ = ["Counted", "Store", "merge"]
