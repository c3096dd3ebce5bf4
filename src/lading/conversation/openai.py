"""OpenAI: messages whose content is a list of typed parts, media inside them.

    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ada.jpg"}},
                                               {"type": "text", "text": "Who is this?"}]},
                  {"role": "assistant", "content": "Ada."}]}

`url` is a path or a data URL. Addresses on a network are refused by name, never fetched. `parts.py` lists the types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lading.conversation import parts
from lading.conversation.layout import Layout
from lading.conversation.sharegpt import contents


def signs(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether some message of a row is a list of parts, none of which waits for a medium from beside.

    >>> signs({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}]}, Layout())
    True
    """
    typed = any(isinstance(said, list) for said in contents(row, layout))
    return typed and not bare_media(row, layout)


def bare_media(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row has a media part without its medium."""
    return any(parts.shows(part) and parts.reference(part) is None for part in _parts(row, layout))


def _parts(row: Mapping[str, Any], layout: Layout) -> Iterator[Mapping[str, Any]]:
    for said in contents(row, layout):
        yield from (part for part in said if isinstance(part, Mapping)) if isinstance(said, list) else ()
