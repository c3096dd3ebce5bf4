"""RDR items: a picture and what it shows."""

from __future__ import annotations

from lading.conversation.layout import Layout
from lading.conversation.one_exchange import exchange, medium, text
from lading.records import Conversation, Row

COLUMNS = ("image", "text")
PROMPT = "Describe this image."


def read(row: Row, layout: Layout | None = None, *, prompt: str = PROMPT) -> Conversation:
    """The picture and the prompt, answered by the row's text.

    >>> from lading.records import SampleKey
    >>> row = Row(key=SampleKey(index=0, source="rdr", where="rdr row 0"), value={"image": "a.png", "text": "A boot."})
    >>> read(row).messages[1].parts
    (TextPart(text='A boot.'),)
    """
    return exchange(row, medium(row, "image", "image", layout), prompt, text(row, "text"))
