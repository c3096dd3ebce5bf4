"""What the assistant says, as character spans of the rendered text.

Markers are not searched for blindly: the walk follows the conversation turn by turn and jumps over what each turn is
known to say. A user who quotes `<|im_start|>assistant` therefore gains no labels, and an answer that quotes
`<|im_end|>` loses none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lading.encode.text_encoder import Span
from lading.errors import Reason, SkipSample
from lading.family import TurnStyle
from lading.fields import MediaKind
from lading.records import Conversation, Message, TextPart


def assistant_spans(
    text: str, conversation: Conversation, style: TurnStyle, marks: Mapping[MediaKind, str]
) -> list[Span]:
    """Character spans of every assistant turn, its closing marker included.

    >>> from lading.records import SampleKey
    >>> style = TurnStyle(opening="[{role}]", closing="[/]")
    >>> talk = Conversation(key=SampleKey(index=0, source="s", where="w"), messages=(
    ...     Message(role="user", parts=(TextPart(text="say [assistant]"),)),
    ...     Message(role="assistant", parts=(TextPart(text="no"),))))
    >>> text = "[user]say [assistant][/][assistant]no[/]"
    >>> [text[start:stop] for start, stop in assistant_spans(text, talk, style, {})]
    ['no[/]']
    """
    spans: list[Span] = []
    cursor = 0
    for message in _turns(conversation, style):
        opening = style.open(message.role)
        found = text.find(opening, cursor)
        if found < 0 and message.role != "assistant":
            # A template may write such a turn into another (what a tool says, into a user's): it is jumped over.
            cursor = _behind(text, cursor, message)
            continue
        if found < 0:
            raise SkipSample(
                Reason.TEMPLATE_REFUSED,
                found=f"no {opening!r} for a {message.role} turn in the rendered text",
                wanted="every turn of the conversation in the text",
                where=conversation.key.where,
            )
        start = found + len(opening)
        stop = _end_of_turn(text, start, message, style, marks)
        if message.role == "assistant":
            unsaid = next((prefix for prefix in style.unsaid if text.startswith(prefix, start)), "")
            spans.append((start + len(unsaid), stop))
        cursor = stop
    return spans


def _turns(conversation: Conversation, style: TurnStyle) -> tuple[Message, ...]:
    """The turns as the template writes them."""
    messages = conversation.messages
    if not (style.system_in_first_turn and len(messages) > 1 and messages[0].role == "system"):
        return messages
    first = replace(messages[1], parts=(*messages[0].parts, *messages[1].parts))
    return (first, *messages[2:])


def _end_of_turn(text: str, start: int, message: Message, style: TurnStyle, marks: Mapping[MediaKind, str]) -> int:
    """One past the turn's closing marker: the first one behind everything the turn is known to say."""
    cursor = start
    for part in message.parts:
        said = part.text if isinstance(part, TextPart) else marks.get(part.kind, "")
        cursor = _after(text, cursor, said, style.closing)
    closing = text.find(style.closing, cursor)
    return len(text) if closing < 0 else closing + len(style.closing)


def _behind(text: str, cursor: int, message: Message) -> int:
    """Behind all that a turn says, wherever it is written."""
    for part in message.parts:
        found = text.find(part.text.strip(), cursor) if isinstance(part, TextPart) else -1
        cursor = found + len(part.text.strip()) if found >= 0 and isinstance(part, TextPart) else cursor
    return cursor


def _after(text: str, cursor: int, said: str, closing: str) -> int:
    """Behind `said`, as written or stripped; where a template changed it, stay: the closing marker then decides."""
    for form in (said, said.strip()):
        found = text.find(form, cursor)
        if found >= 0 and closing not in text[cursor:found]:
            return found + len(form)
    return cursor
