"""CommonVoice 17: a recording and what is said in it."""

from __future__ import annotations

from lading.conversation.layout import Layout
from lading.conversation.one_exchange import exchange, medium, text
from lading.records import Conversation, Row

COLUMNS = ("audio", "transcription")
PROMPT = "Transcribe this recording."


def read(row: Row, layout: Layout | None = None, *, prompt: str = PROMPT) -> Conversation:
    """The recording and the prompt, answered by the transcription.

    >>> from lading.records import SampleKey
    >>> value = {"audio": {"bytes": None, "path": "a.wav"}, "transcription": "Merhaba."}
    >>> read(Row(key=SampleKey(index=0, source="cv17", where="cv17 row 0"), value=value)).media[0].kind
    'audio'
    """
    return exchange(row, medium(row, "audio", "audio", layout), prompt, text(row, "transcription"))
