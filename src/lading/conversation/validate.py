"""What every conversation must have before anybody spends time on it."""

from __future__ import annotations

from lading.errors import Reason, SkipSample
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
