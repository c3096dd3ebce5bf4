"""The checks. One that looks at a conversation is a function of what was read; to add one: write it, put it into
`CHECKS`, and give each kind it finds a line in `lading.doctor.kinds`.

| file | looks at |
| --- | --- |
| `turns` | order and emptiness of turns |
| `words` | what stands in the text |
| `columns` | columns that nobody reads |
| `places` | where the files of media lie |
| `media`, `signatures` | one medium: its header, its edges, its name |
| `exact` | what a processor makes of it |
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lading.doctor.checks import columns, places, turns
from lading.doctor.kinds import Problem
from lading.doctor.reading import Read

Check = Callable[[Read], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (turns.order, turns.emptiness, columns.unread, places.outside_media_folder)
"""Checks of what a row says. `words` is beside them: it wants to know the markers."""
