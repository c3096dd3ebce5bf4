"""Where media may lie. A row names files, and whoever wrote it may name any: absolute ones, `../` ones, links.

Without roots every local file may be read. With them, a file is opened only if it lies below one of them once every
link on the way is followed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import lru_cache

_SNAPSHOT = re.compile(r"(.*/(?:models|datasets|spaces)--[^/]+)/snapshots/")
"""A folder in the hub's cache whose files are links to the `blobs` beside it."""


def lies_below(path: str, roots: Sequence[str]) -> bool:
    """Whether a file lies below one of these folders, every link followed.

    >>> lies_below("/srv/pictures/../secret.png", ["/srv/pictures"]), lies_below("/srv/pictures/a.png", ["/srv"])
    (False, True)
    """
    resolved = os.path.realpath(path)
    return any(resolved.startswith(root) for root in _resolved(tuple(roots)))


@lru_cache(maxsize=64)
def _resolved(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The folders behind these, and the blobs that belong to those that are snapshots of the hub, with a `/` at the
    end.
    """
    folders = [os.path.join(os.path.realpath(root), "") for root in roots]
    snapshots = [found for folder in folders if (found := _SNAPSHOT.match(folder))]
    return (*folders, *(os.path.join(found.group(1), "blobs", "") for found in snapshots))
