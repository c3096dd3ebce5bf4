"""Storage → indexed `Row`s. This room owns mixing, ratio and order; it never looks inside a row.

open_corpus("meta.json")     a mixture of files, each with its format, columns, tags, media folder and ratio
open_corpus("data.jsonl")    one memory-mapped file, a row a line
open_corpus("data.json")     one JSON array
open_corpus("data.parquet")  one Parquet file
open_corpus("folder")        a data set that `datasets` understands: saved to disk, Parquet, a folder of pictures
open_corpus(dataset)         the same, open already
"""

from lading.sources.corpus import Corpus, open_corpus, open_source, source_configs
from lading.sources.meta import SourceConfig

__all__ = ["Corpus", "SourceConfig", "open_corpus", "open_source", "source_configs"]
