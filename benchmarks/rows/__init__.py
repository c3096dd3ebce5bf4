"""The rows, one file each, in the order of their names. A new row is a new file; nothing lists them."""

from __future__ import annotations

import pkgutil


def names() -> list[str]:
    """The modules of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__))
