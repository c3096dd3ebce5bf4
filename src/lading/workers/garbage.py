"""What is loaded already, out of the garbage collector's sight for a while."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def settled_heap() -> Iterator[None]:
    """While it lasts, the collector looks at new objects only.

    Whoever makes many small objects wakes it again and again, and each time it walks through all that torch and
    transformers have loaded: a fifth of the time of counting. Where somebody froze the heap already, it stays as it is;
    what somebody else freezes meanwhile is let go with the rest.

    >>> with settled_heap():
    ...     gc.get_freeze_count() > 0
    True
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
