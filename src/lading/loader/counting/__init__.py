"""A corpus → its length table, each data file counted once and kept.

count           what is known is read, what is missing is counted and kept
processes       others that count along
fingerprint     everything that lengths depend on
witnesses       a few media files, to notice that they were changed
annotated_copy  a copy of a corpus with the counts in its rows
"""

from lading.loader.counting.count import Count, Counting

__all__ = ["Count", "Counting"]
