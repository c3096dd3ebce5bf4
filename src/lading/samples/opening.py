"""Whatever was given for a corpus → the corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.errors import ConfigError
from lading.sources import Corpus, open_corpus


def opened(
    corpus: Any,
    cache: Cache,
    format_name: str | None,
    media_dir: str | Path | None,
    media_roots: Sequence[str | Path] | None,
) -> Corpus:
    """The corpus behind a path or a data set; one that is open is taken as it is."""
    if not isinstance(corpus, Corpus):
        return open_corpus(corpus, cache=cache, format=format_name, media_dir=media_dir, media_roots=media_roots)
    if format_name is not None or media_dir is not None or media_roots is not None:
        raise ConfigError(
            found="format, media_dir or media_roots for a corpus that is open",
            wanted="open_corpus(…, format=…, media_dir=…, media_roots=…)",
            where="Loader",
        )
    return corpus
