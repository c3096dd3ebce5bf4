"""TRL's prompt and completion, each as messages or as text, with the row's pictures in a column beside them.

    {"prompt": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who is this?"}]}],
     "completion": [{"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}], "images": ["ada.jpg"]}
    {"prompt": "Who is this?", "completion": "Ada.", "images": ["ada.jpg"]}

Text becomes a user's turn and an assistant's. Pictures without a place go before the first user's words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.turns import MEDIA_FIRST, as_list, read_turns
from lading.errors import Reason, SkipSample
from lading.records import Conversation, Row

ROLES = {"prompt": "user", "completion": "assistant"}


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from having a prompt and a completion.

    >>> lacks({"prompt": "Who?", "chosen": "Ada."}, Layout())
    ("a column 'completion'",)
    """
    names = [layout.column(side) for side in ROLES]
    return tuple(f"a column {name!r}" for name in names if row.get(name) is None)


def read(row: Row, layout: Layout) -> Conversation:
    columns = {layout.column(side): role for side, role in ROLES.items()}
    messages = [message for column, role in columns.items() for message in _messages(row, column, role)]
    written = all(isinstance(row.value.get(column), str) for column in columns)
    return read_turns(row, layout.untagged if written else layout, messages=messages, turn_format=MEDIA_FIRST)


def answers_in_prompt(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether an assistant speaks in the prompt: TRL leaves such turns out of the loss.

    >>> answers_in_prompt({"prompt": [{"role": "assistant", "content": "Hi."}], "completion": "Ho."}, Layout())
    True
    """
    prompt = as_list(row.get(layout.column("prompt"))) or ()
    return any(isinstance(message, Mapping) and message.get("role") == "assistant" for message in prompt)


def _messages(row: Row, column: str, role: str) -> list[Any] | tuple[Any, ...]:
    value = row.value.get(column)
    listed = as_list(value) if not isinstance(value, str) else [{"role": role, "content": value}]
    if listed is None:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"a {type(value).__name__} in column {column!r}",
            wanted="text, or a list of messages",
            where=row.key.where,
        )
    return listed
