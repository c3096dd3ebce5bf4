"""What every conversation must have before anybody spends time on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from lading.errors import Reason, SkipSample
from lading.fields import MediaKind
from lading.records import Conversation


def validate(conversation: Conversation) -> Conversation:
    """The conversation itself, or the reason why it cannot be trained on."""
    where = conversation.key.where
    if not conversation.messages:
        raise SkipSample(Reason.EMPTY_CONVERSATION, found="no messages", wanted="a question and an answer", where=where)
    roles = [message.role for message in conversation.messages]
    if "assistant" not in roles:
        raise SkipSample(
            Reason.NO_ASSISTANT_TURN,
            found=f"only {', '.join(dict.fromkeys(roles))} turns",
            wanted="an assistant turn to train on",
            where=where,
        )
    return conversation


def refuse_tools(row: Mapping[str, Any], messages: Sequence[Any], where: str, column: str = "tools") -> None:
    """Tool definitions and calls are not rendered yet; training without them would teach answers out of nowhere."""
    calls = any(isinstance(message, (dict, Mapping)) and message.get("tool_calls") for message in messages)
    tools = row.get(column)
    # A list of tools is often kept as JSON text, and an empty one is written in several ways.
    none = is_empty(tools) or (isinstance(tools, str) and "".join(tools.split()) in ("", "[]", "{}", "null"))
    if calls or not none:
        raise SkipSample(
            Reason.BAD_ROW, found="tool calls or definitions", wanted="a conversation in words and media", where=where
        )


def is_empty(value: Any) -> bool:
    """Whether a column says nothing: null, or a text, list or object with nothing in it.

    >>> is_empty(None), is_empty({}), is_empty([""])
    (True, True, False)
    """
    return value is None or (isinstance(value, (str, list, tuple, Mapping)) and not value)


def refuse_half_characters(text: str, where: str) -> None:
    """A lone surrogate, as a broken escape in JSON leaves it, cannot be tokenised."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"half a character (a lone surrogate) at place {error.start} of a message",
            wanted="text that can be written as UTF-8",
            where=where,
        ) from error


def refuse_leftovers(kind: MediaKind, left: int, where: str, wanted: str = "a mark in the text for each") -> NoReturn:
    """Media that no mark speaks of would be lost."""
    raise SkipSample(
        Reason.MEDIA_WITHOUT_MARKS,
        found=f"{left} more {kind}{'s' if left > 1 else ''} than <{kind}> marks",
        wanted=wanted,
        where=where,
    )
