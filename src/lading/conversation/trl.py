"""TRL's conversations: messages, and their pictures in a column beside them, with or without parts that stand for them.

    {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who is this?"}]},
                  {"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}],
     "images": ["ada.jpg"]}
    {"messages": [{"role": "user", "content": "Who is this?"}, {"role": "assistant", "content": "Ada."}],
     "images": ["ada.jpg"]}

In a row that has no place for its pictures they go before the first user's words, as TRL puts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.openai import bare_media
from lading.conversation.sharegpt import contents, marked
from lading.conversation.turns import TurnFormat, as_list, read_turns
from lading.fields import MEDIA_KINDS
from lading.records import Conversation, Row

MANNERS = TurnFormat(unplaced_first=True)


def signs(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row's media have typed places but stand beside, or have no places at all.

    >>> talk = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    >>> signs({"messages": talk, "images": ["a.jpg"]}, Layout()), signs({"messages": talk}, Layout())
    (True, False)
    """
    if bare_media(row, layout):
        return True
    said = contents(row, layout)
    beside = any(layout.media(row, kind) for kind in MEDIA_KINDS)
    plain = bool(said) and all(isinstance(own, str) for own in said) and not marked(row, layout)
    return beside and plain and all("role" in message for message in as_list(layout.messages(row, "")) or ())


def read(row: Row, layout: Layout) -> Conversation:
    """The conversation a row holds."""
    return read_turns(row, layout, turn_format=MANNERS)
