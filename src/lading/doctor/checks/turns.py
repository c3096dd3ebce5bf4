"""The turns of a conversation: their order, and whether anybody says anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from lading.doctor.kinds import Problem
from lading.doctor.reading import Read
from lading.records import MediaPart, Message

SPEAKERS = ("user", "assistant")
"""Roles that take turns. Several tools may answer one after the other."""


def order(seen: Read) -> Iterator[Problem]:
    """Roles that stand where they do not belong."""
    roles = [message.role for message in seen.conversation.messages]
    talk = [role for role in roles if role != "system"]
    if talk[0] == "assistant":
        yield Problem("assistant_first", f"{talk[0]} speaks first")
    if "system" in roles[1:]:
        yield Problem("system_in_middle", f"system as turn {roles.index('system', 1) + 1} of {len(roles)}")
    for place, (one, other) in enumerate(pairwise(roles), start=1):
        if one == other and one in SPEAKERS:
            yield Problem("repeated_role", f"{one} in turns {place} and {place + 1}")
            break
    if talk[-1] == "user":
        yield Problem("unanswered_turn", f"the last of {len(roles)} turns is a question")


def emptiness(seen: Read) -> Iterator[Problem]:
    """Messages that say and show nothing."""
    kinds = {"user": "empty_question", "assistant": "empty_answer"}
    given = set()
    for place, message in enumerate(seen.conversation.messages, start=1):
        kind = kinds.get(message.role)
        if kind is not None and kind not in given and _empty(message):
            given.add(kind)
            yield Problem(kind, f"turn {place} is empty")


def _empty(message: Message) -> bool:
    return not any(isinstance(part, MediaPart) or part.text.strip() for part in message.parts)
