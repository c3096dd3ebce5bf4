"""Where a conversation that is too long may end.

Behind a whole answer, or, inside an answer that shows media, before or behind one of them:

    user: Who is this?  assistant: A cat.  user: And this?  assistant: A dog, [picture] a fox.
                                         ^                                ^          ^

Never inside a medium, never inside text, and never behind a question: nothing would be learnt from it. What is kept is
a conversation like any other; the chat template closes it as if its author had ended it there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lading.records import Conversation, Cut, MediaPart, Message, TextPart


def cuts(conversation: Conversation) -> list[Cut]:
    """Every place where it may end before its end, the longest first.

    >>> from lading.records import SampleKey
    >>> answer = Message(role="assistant", parts=(
    ...     TextPart(text="A dog,"), MediaPart(kind="image", reference="dog.jpg"), TextPart(text="a fox.")))
    >>> conversation = Conversation(key=SampleKey(index=0, source="s", where="w"), messages=(
    ...     Message(role="user", parts=(TextPart(text="Who?"),)), answer))
    >>> [(cut.messages, cut.parts) for cut in cuts(conversation)]
    [(2, 2), (2, 1)]
    """
    messages = conversation.messages
    last = Cut(messages=len(messages), parts=len(messages[-1].parts))
    found = (
        Cut(messages=place + 1, parts=parts)
        for place in reversed(range(len(messages)))
        if messages[place].role == "assistant"
        for parts in _ends(messages[place])
    )
    return [cut for cut in found if cut != last]


def shorten(conversation: Conversation, cut: Cut) -> Conversation:
    """The conversation up to a cut."""
    *before, last = conversation.messages[: cut.messages]
    return replace(conversation, messages=(*before, replace(last, parts=last.parts[: cut.parts])))


def _ends(answer: Message) -> Iterator[int]:
    """After how many parts an answer may end, the most first: all of them, or at a medium, once there was some text."""
    parts = answer.parts
    yield len(parts)
    for stop in reversed(range(1, len(parts))):
        at_medium = isinstance(parts[stop - 1], MediaPart) or isinstance(parts[stop], MediaPart)
        if at_medium and any(isinstance(part, TextPart) and part.text.strip() for part in parts[:stop]):
            yield stop
