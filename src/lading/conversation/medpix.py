"""MedPix: a medical picture, a question about it and the answer."""

from __future__ import annotations

from lading.conversation.layout import Layout
from lading.conversation.one_exchange import exchange, medium, text
from lading.records import Conversation, Row

COLUMNS = ("image_id", "question", "answer")


def read(row: Row, layout: Layout | None = None) -> Conversation:
    """The picture (in `image_id`) and the row's question, answered by the row's answer.

    >>> from lading.records import SampleKey
    >>> value = {"image_id": "scan.png", "question": "Which organ?", "answer": "The liver."}
    >>> read(Row(key=SampleKey(index=0, source="medpix", where="medpix row 0"), value=value)).media[0].reference
    'scan.png'
    """
    return exchange(row, medium(row, "image_id", "image", layout), text(row, "question"), text(row, "answer"))
