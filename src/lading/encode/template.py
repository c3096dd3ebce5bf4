"""Conversation → the text that the chat template makes of it → the spans of it that the assistant says."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lading.encode.text_encoder import Span
from lading.errors import ConfigError, MissingPrivateName, Reason, SkipSample
from lading.family import TurnStyle
from lading.fields import MediaKind
from lading.private_names import compiled_template
from lading.records import REASONING_KEYS, Conversation, Message, TextPart

if TYPE_CHECKING:
    from jinja2 import Template

logger = logging.getLogger(__name__)

Render = Callable[[Conversation], str]

COMPARED = 16
"""Texts that are compared before the quicker way to write them is trusted."""
NO_OPTIONS: Mapping[str, Any] = {}
NO_EXTRAS: Mapping[str, Any] = {"documents": None, "add_generation_prompt": False}
"""What transformers hands to every template besides the messages and the tools."""
EMPTY_THOUGHT = re.compile(r"<think>\s*</think>\s*")
"""What templates write in front of an answer for which nothing was thought: the assistant does not say it."""
_OPENING = re.compile(r"\s*(?:<[\w|:]+>|\[\w+\])(?:thought)?\s*")
"""What stands in front of a thought that is written."""
_TAG = re.compile(r"\s*(?:</?[\w:|]+>|\[/?\w+\])\s*")


def messages_for_template(
    messages: tuple[Message, ...], *, system_as_text: bool = False, reasoning: Sequence[str] = REASONING_KEYS
) -> list[dict[str, Any]]:
    """The shape chat templates read: a role and a list of typed parts. No medium is in it, only its place.

    >>> messages_for_template((Message(role="user", parts=(TextPart(text="hi"),)),))
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'hi'}]}]
    """
    written: list[dict[str, Any]] = []
    for message in messages:
        as_text = system_as_text and message.role == "system"
        content = _text(message) if as_text else [_part(part) for part in message.parts]
        turn: dict[str, Any] = {"role": message.role, "content": content}
        if message.thought:
            turn.update(dict.fromkeys(reasoning, message.thought))
        if message.calls:
            turn["tool_calls"] = list(message.calls)
        if message.names:
            turn.update(dict(message.names))
        written.append(turn)
    return written


def reasoning_names(template: str) -> tuple[str, ...]:
    """The names under which a template reads what was thought; none where it writes no thoughts.

    >>> reasoning_names("{{ message.reasoning_content }}{{ m.get('reasoning') }}{% if thinking %}{% endif %}")
    ('reasoning_content', 'reasoning')
    """
    return tuple(name for name in REASONING_KEYS if re.search(rf"(\.|['\"]){name}\b", template))


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
        self,
        template: str | None,
        special_tokens: Mapping[str, Any],
        *,
        where: str,
        system_as_text: bool = False,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> None:
        if not template:
            raise ConfigError(
                found="a processor without a chat template",
                wanted="one that knows how its model's turns are written",
                consequence="set processor.chat_template, or name a family that builds its prompt itself",
                where=where,
            )
        self._template, self._system_as_text = template, system_as_text
        self._reasoning = reasoning_names(template)
        self._warned = False
        self._extras = {**special_tokens, **options}
        _refuse_unread(template, options, special_tokens, where)
        plain = all(isinstance(token, str) for token in special_tokens.values())
        self._compiled = _compiled(template) if plain else None
        self._compared = 0

    def __call__(self, conversation: Conversation) -> str:
        """The conversation's text; `SkipSample` where the template refuses it."""
        self._refuse_unreadable(conversation)
        text = self._rendered(conversation)
        if not self._warned and left_out_thoughts(text, conversation):
            self._warned = True  # once: some templates leave out those of all earlier turns
            logger.warning(
                "the chat template leaves out what was thought before an answer of %s, and perhaps of others;"
                " template_options may keep it (preserve_thinking), and reasoning='drop' says that it is meant",
                conversation.key,
            )
        return text

    def _rendered(self, conversation: Conversation) -> str:
        from jinja2 import TemplateError

        messages = messages_for_template(
            conversation.messages, system_as_text=self._system_as_text, reasoning=self._reasoning
        )
        tools = list(conversation.tools) or None
        try:
            if self._compiled is None or self._compared < COMPARED:
                return self._compare(messages, tools)
            return self._compiled.render(messages=messages, tools=tools, **NO_EXTRAS, **self._extras)
        except (TemplateError, TypeError) as error:  # what JSON cannot hold, in a call of a tool, is a TypeError
            raise SkipSample(
                Reason.TEMPLATE_REFUSED,
                found=f"a conversation the chat template refuses ({error})",
                where=conversation.key.where,
            ) from error

    def _compare(self, messages: list[dict[str, Any]], tools: list[Mapping[str, Any]] | None) -> str:
        """The text by transformers' own function, compared with what the compiled template writes."""
        from transformers.utils.chat_template_utils import render_jinja_template

        texts, _ = render_jinja_template(
            conversations=[messages], tools=tools, chat_template=self._template, **self._extras
        )
        if self._compiled is not None:
            self._compared += 1
            if self._compiled.render(messages=messages, tools=tools, **NO_EXTRAS, **self._extras) != texts[0]:
                self._compiled = None
        return str(texts[0])

    def _refuse_unreadable(self, conversation: Conversation) -> None:
        """Refuse what the template has no place for, by the names that it reads."""
        if not self._reasoning and any(message.thought for message in conversation.messages):
            raise ConfigError(
                found=f"reasoning beside an answer of {conversation.key}, and a chat template that reads none",
                wanted=f"reasoning='drop', or a template that reads one of {', '.join(REASONING_KEYS)}",
                consequence="answers would be trained on without what led to them",
                where="Loader",
            )
        for name, given in (("tools", conversation.tools), ("tool_calls", any(m.calls for m in conversation.messages))):
            if given and name not in self._template:
                raise SkipSample(
                    Reason.TOOL_CALLS,
                    found=f"{name}, which the chat template does not write",
                    wanted=f"a template that reads `{name}`",
                    where=conversation.key.where,
                )


def _compiled(template: str) -> Template | None:
    """The compiled template; `None` where this version of transformers keeps it elsewhere: what it offers is slower."""
    try:
        return compiled_template(template)
    except MissingPrivateName as error:
        logger.warning("%s", error)
        return None


def _refuse_unread(template: str, options: Mapping[str, Any], special_tokens: Iterable[str], where: str) -> None:
    """Refuse options that the template does not read, and those that it is handed in any case."""
    own = {"messages", "tools", *NO_EXTRAS, *special_tokens}
    unread = [name for name in options if name in own or not re.search(rf"\b{re.escape(name)}\b", template)]
    if unread:
        raise ConfigError(
            found=f"template_options {', '.join(unread)}, which the chat template does not read",
            wanted="options that it reads",
            consequence="it would write what it writes without them",
            where=where,
        )


def has_generation_blocks(template: str) -> bool:
    """Whether a template says itself what the assistant says, in `{% generation %}` blocks."""
    return re.search(r"{%-?\s*generation\s*-?%}", template) is not None


def generation_finder(
    template: str,
    special_tokens: Mapping[str, Any],
    *,
    closing: str,
    system_as_text: bool = False,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Callable[[Conversation, str], list[tuple[int, int]]]:
    """A function that finds what the assistant says by the template's own blocks, and the closing marker behind it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    def find(conversation: Conversation, text: str) -> list[tuple[int, int]]:
        messages = messages_for_template(
            conversation.messages, system_as_text=system_as_text, reasoning=reasoning_names(template)
        )
        _, found = render_jinja_template(
            conversations=[messages],
            tools=list(conversation.tools) or None,
            chat_template=template,
            return_assistant_tokens_mask=True,
            **special_tokens,
            **options,
        )
        answers = [message for message in conversation.messages if message.role == "assistant"]
        spans = [(start, stop + len(closing) * text.startswith(closing, stop)) for start, stop in found[0]]
        if len(answers) != len(spans):
            return spans
        return [(start_of_said(text, *span, answer), span[1]) for span, answer in zip(spans, answers, strict=True)]

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
            spans.append((start_of_said(text, start, stop, message, style.unsaid), stop))
        cursor = stop
    return spans


def start_of_said(text: str, start: int, stop: int, message: Message, unsaid: Sequence[str] = ()) -> int:
    """Where, in an assistant's turn, that begins which is trained on: behind a thought that the template itself wrote,
    and behind one that is only given.
    """
    thought = _written_thought(text, start, stop, message)
    if thought is None:
        said = next((part.text for part in message.parts if isinstance(part, TextPart)), "")
        start += len(next((prefix for prefix in unsaid if text.startswith(prefix, start)), ""))
        empty = EMPTY_THOUGHT.match(text, start, stop)
        return empty.end() if empty and not EMPTY_THOUGHT.match(said.lstrip()) else start
    if message.thought_weight:
        return start
    said = next((part.text.strip() for part in message.parts if isinstance(part, TextPart) and part.text.strip()), "")
    answer = text.find(said, thought, stop) if said else -1
    tag = _TAG.match(text, thought, stop)
    return answer if answer >= 0 else tag.end() if tag else thought


def _written_thought(text: str, start: int, stop: int, message: Message) -> int | None:
    """Where the thought of a turn ends; `None` where there is none, or the template left it out."""
    thought = message.thought.strip()
    if not thought:
        return None
    opening = _OPENING.match(text, start, stop)
    behind = opening.end() if opening else start
    return behind + len(thought) if text.startswith(thought, behind) else None


def left_out_thoughts(text: str, conversation: Conversation) -> int:
    """How many thoughts of a conversation the rendered text lacks.

    >>> from lading.records import SampleKey
    >>> answer = Message(role="assistant", parts=(TextPart(text="Four."),), thought="Two and two.")
    >>> talk = Conversation(key=SampleKey(index=0, source="s", where="w"), messages=(answer,))
    >>> left_out_thoughts("<think></think>Four.", talk), left_out_thoughts("<think>Two and two.</think>Four.", talk)
    (1, 0)
    """
    return sum(bool(own.thought) and own.thought.strip() not in text for own in conversation.messages)


def _turns(conversation: Conversation, style: TurnStyle) -> tuple[Message, ...]:
    """The turns as the template writes them."""
    messages = conversation.messages
    if not (style.system_in_first_turn and len(messages) > 1 and messages[0].role == "system"):
        return messages
    first = replace(messages[1], parts=(*messages[0].parts, *messages[1].parts))
    return (first, *messages[2:])


def _end_of_turn(text: str, start: int, message: Message, style: TurnStyle, marks: Mapping[MediaKind, str]) -> int:
    """One past the turn's closing marker: the first one behind everything the turn is known to say."""
    cursor = _after(text, start, message.thought, style.closing) if message.thought else start
    for part in message.parts:
        said = part.text if isinstance(part, TextPart) else marks.get(part.kind, "")
        cursor = _after(text, cursor, said, style.closing)
    # Arguments of a call may quote the marker, as often as they do.
    quoted = sum(json.dumps(call, ensure_ascii=False).count(style.closing) for call in message.calls)
    closing = text.find(style.closing, cursor)
    for _ in range(quoted):
        closing = text.find(style.closing, closing + 1) if closing >= 0 else closing
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
