"""Conversation → the text that the chat template makes of it → the spans of it that the assistant says."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lading.encode.text_encoder import Span
from lading.errors import ConfigError, MissingPrivateName, Reason, SkipSample
from lading.family import TurnStyle
from lading.fields import MediaKind
from lading.private_names import compiled_template
from lading.records import Conversation, Message, TextPart

if TYPE_CHECKING:
    from jinja2 import Template

logger = logging.getLogger(__name__)

Render = Callable[[Conversation], str]

COMPARED = 16
"""Texts that are compared before the quicker way to write them is trusted."""
NO_EXTRAS: Mapping[str, Any] = {"tools": None, "documents": None, "add_generation_prompt": False}
"""What transformers hands to every template besides the messages."""


def messages_for_template(messages: tuple[Message, ...], *, system_as_text: bool = False) -> list[dict[str, Any]]:
    """The shape chat templates read: a role and a list of typed parts. No medium is in it, only its place.

    >>> messages_for_template((Message(role="user", parts=(TextPart(text="hi"),)),))
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """
    return [
        {"role": message.role, "content": _text(message)}
        if system_as_text and message.role == "system"
        else {"role": message.role, "content": [_part(part) for part in message.parts]}
        for message in messages
    ]


def _text(message: Message) -> str:
    return "".join(part.text for part in message.parts if isinstance(part, TextPart))


def _part(part: object) -> dict[str, str]:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text}
    return {"type": part.kind}  # type: ignore[attr-defined]  # the only other part is MediaPart


class Renderer:
    """Renders conversations with one chat template, which transformers compiled once.

    Its own function first rebuilds whatever it is given out of plain values; ours are plain already, and a third of the
    time is saved. The first texts are compared with that function's: where one differs, it is used for all.
    """

    def __init__(
        self, template: str | None, special_tokens: Mapping[str, Any], *, where: str, system_as_text: bool = False
    ) -> None:
        if not template:
            raise ConfigError(
                found="a processor without a chat template",
                wanted="one that knows how its model's turns are written",
                consequence="set processor.chat_template, or name a family that builds its prompt itself",
                where=where,
            )
        self._template, self._special_tokens, self._system_as_text = template, special_tokens, system_as_text
        plain = all(isinstance(token, str) for token in special_tokens.values())
        self._compiled = _compiled(template) if plain else None
        self._compared = 0

    def __call__(self, conversation: Conversation) -> str:
        """The conversation's text; `SkipSample` where the template refuses it."""
        from jinja2 import TemplateError

        messages = messages_for_template(conversation.messages, system_as_text=self._system_as_text)
        try:
            if self._compiled is None or self._compared < COMPARED:
                return self._compare(messages)
            return self._compiled.render(messages=messages, **NO_EXTRAS, **self._special_tokens)
        except TemplateError as error:
            raise SkipSample(
                Reason.TEMPLATE_REFUSED,
                found=f"a conversation the chat template refuses ({error})",
                where=conversation.key.where,
            ) from error

    def _compare(self, messages: list[dict[str, Any]]) -> str:
        """The text by transformers' own function, compared with what the compiled template writes."""
        from transformers.utils.chat_template_utils import render_jinja_template

        texts, _ = render_jinja_template(conversations=[messages], chat_template=self._template, **self._special_tokens)
        if self._compiled is not None:
            self._compared += 1
            if self._compiled.render(messages=messages, **NO_EXTRAS, **self._special_tokens) != texts[0]:
                self._compiled = None
        return str(texts[0])


def _compiled(template: str) -> Template | None:
    """The compiled template; `None` where this version of transformers keeps it elsewhere: what it offers is slower."""
    try:
        return compiled_template(template)
    except MissingPrivateName as error:
        logger.warning("%s", error)
        return None


def has_generation_blocks(template: str) -> bool:
    """Whether a template says itself what the assistant says, in `{% generation %}` blocks."""
    return re.search(r"{%-?\s*generation\s*-?%}", template) is not None


def generation_finder(
    template: str, special_tokens: Mapping[str, Any], *, closing: str, system_as_text: bool = False
) -> Callable[[Conversation, str], list[tuple[int, int]]]:
    """A function that finds what the assistant says by the template's own blocks, and the closing marker behind it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def find(conversation: Conversation, text: str) -> list[tuple[int, int]]:
        messages = messages_for_template(conversation.messages, system_as_text=system_as_text)
        _, found = render_jinja_template(
            conversations=[messages], chat_template=template, return_assistant_tokens_mask=True, **special_tokens
        )
        return [(start, stop + len(closing) * text.startswith(closing, stop)) for start, stop in found[0]]

    return find


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
