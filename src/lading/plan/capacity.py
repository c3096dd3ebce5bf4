"""How many tokens of a pack samples may fill, so that a placeholder behind them still fits."""

from __future__ import annotations

import numpy as np

from lading.errors import ConfigError
from lading.records import LengthTable


def sample_capacity(table: LengthTable, *, pack_size: int, placeholder: int = 0, truncating: bool = False) -> int:
    """`pack_size`, less a placeholder's tokens if some batch may need one: no row is ever longer than a pack.

    Which packs come out without pictures is not known before they are planned, so all of them leave space, unless every
    sample shows something. A sample that is cut may lose what it shows.

    >>> tables = [LengthTable.of(tokens=np.array([9, 9]), images=np.array([1, shown])) for shown in (0, 1)]
    >>> [sample_capacity(table, pack_size=100, placeholder=30) for table in tables]
    [70, 100]
    """
    shows_nothing = (table.tokens > 0) & (table.images == 0) & (table.videos == 0)
    if truncating:
        shows_nothing |= table.tokens > pack_size - placeholder
    if not placeholder or not np.any(shows_nothing):
        return pack_size
    if placeholder >= pack_size:
        raise ConfigError(
            found=f"pack_size {pack_size} with placeholder_media, whose picture takes {placeholder} tokens",
            wanted="space for samples beside it",
            consequence="nothing could be packed",
            where="Loader",
        )
    return pack_size - placeholder
