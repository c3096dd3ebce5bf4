"""What a message says besides who speaks, and what: weights, thoughts, calls of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lading.conversation.keys import TOOL_KEYS, WEIGHT_KEYS, Reading, given
from lading.errors import Reason, SkipSample
from lading.records import REASONING_KEYS, Message


def with_extras(
    turn: Message, message: Mapping[str, Any], thoughts: Sequence[str], reading: Reading, where: str
) -> Message:
    """The turn with what its message says besides who speaks, and what: weights, thoughts, calls of tools."""
    own_names = TOOL_KEYS[1:] if turn.role == "tool" else ("name",)
    names = tuple((own, str(message[own])) for own in own_names if given(message.get(own)))
    if turn.role != "assistant":
        return replace(turn, names=names) if names else turn
    thoughts = [*thoughts, *(_thought(message[own], own, where) for own in REASONING_KEYS if given(message.get(own)))]
    return replace(
        turn,
        thought="" if reading.reasoning == "drop" else "\n".join(dict.fromkeys(thoughts)),
        thought_weight=0.0 if reading.reasoning == "given" else 1.0,
        calls=listed_objects(message.get("tool_calls"), "tool_calls", where),
        names=names,
        weight=_weight(message, reading, where),
    )


def _thought(text: Any, name: str, where: str) -> str:
    if not isinstance(text, str):
        raise SkipSample(Reason.BAD_ROW, found=f"{name} as a {type(text).__name__}", wanted="text", where=where)
    refuse_half_characters(text, where)
    return text


def _weight(message: Mapping[str, Any], reading: Reading, where: str) -> float:
    """How much the loss of a message counts; 1 where it does not say."""
    asked = [name for name in WEIGHT_KEYS if given(message.get(name)) and name not in reading.ignore_keys]
    if not asked:
        return 1.0
    numbers = {as_weight(message[name]) for name in asked}
    if len(numbers) == 1 and (number := numbers.pop()) is not None:
        return number
    raise SkipSample(
        Reason.BAD_ROW,
        found=", ".join(f"{name} {message[name]!r:.40}" for name in asked),
        wanted="one number from 0 up, or true or false, for how much a message's loss counts",
        where=where,
    )


def as_weight(value: Any) -> float | None:
    """A number from 0 up, true or false, as a weight; `None` for everything else.

    >>> as_weight(True), as_weight(0.5), as_weight(-1), as_weight("1"), as_weight(10**400)
    (1.0, 0.5, None, None, None)
    """
    try:
        number = float(value) if isinstance(value, (bool, int, float, np.number)) else -1.0
    except OverflowError:
        return None
    return number if 0 <= number < float("inf") else None


def is_weightless(value: Any) -> bool:
    """Whether a weight asks for nothing that is not done: 0 and `false`, and the number 1."""
    return value is False or (as_weight(value) in (0.0, 1.0) and not isinstance(value, bool))


def listed_objects(value: Any, name: str, where: str) -> tuple[Mapping[str, Any], ...]:
    """A list of objects, which is often kept as JSON text; nothing where none is given.

    >>> listed_objects('[{"name": "look"}]', "tools", "w"), listed_objects("null", "tools", "w")
    (({'name': 'look'},), ())
    """
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else None
        except (ValueError, RecursionError):
            value = [value]
    listed = [value] if isinstance(value, Mapping) and value else value or ()
    if not isinstance(listed, (list, tuple)) or not all(isinstance(own, Mapping) for own in listed):
        raise SkipSample(
            Reason.BAD_ROW, found=f"{name} that are no list of objects", wanted='[{"type": "function", …}]', where=where
        )
    if listed:
        refuse_half_characters(json.dumps(listed, ensure_ascii=False, default=str), where)
    return tuple(listed)


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
