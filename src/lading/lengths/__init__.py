"""A corpus → its length table: exact token counts without decoding a pixel, each data file counted once and kept.

count           what is known is read, what is missing is counted (by several processes) and kept
gc_freeze       a garbage collector that leaves alone what was there before counting began
rows            what the rows of a file cost
store           those numbers on disk: memory-mapped, sealed with a digest, never half-written
fingerprint     everything that lengths depend on; the sizes of a few media files, to notice that they were changed
annotate        a copy of a corpus with the counts in its rows
lost_sources    sources of which nothing can be trained on, and why
"""

from lading.lengths.count import Count, Counting, count_lengths
from lading.lengths.rows import Counted, merge
from lading.lengths.store import Store

__all__ = ["Count", "Counted", "Counting", "Store", "count_lengths", "merge"]
