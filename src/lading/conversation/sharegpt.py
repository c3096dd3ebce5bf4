r"""ShareGPT: messages with marks in their text, media in lists beside them. `from`/`value` or `role`/`content`.

    {"conversations": [{"from": "human", "value": "<image>Who is this?"}, {"from": "gpt", "value": "Ada."}],
     "images": ["ada.jpg"]}
    {"messages": [{"role": "user", "content": "<image>Who is this?"}, {"role": "assistant", "content": "Ada."}],
     "images": ["ada.jpg"]}

Text is taken to the letter: what stands around a mark, a line break too, is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import CONTENT_KEYS, MESSAGE_COLUMNS, ROLE_KEYS, Layout, given_at_all
from lading.conversation.turns import MARKS, as_list

SINGULAR = ("image", "video")


def lacks(row: Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    """What keeps a row from being messages, in any of their varieties.

    >>> lacks({"messages": [{"role": "user"}]}, Layout())
    ("a content in every message ('content' or 'value')",)
    """
    given = layout.columns.get("messages")
    if not layout.has_messages(row):
        return (f"a column {' or '.join(map(repr, (given,) if given else MESSAGE_COLUMNS))}",)
    listed = as_list(layout.messages(row, ""))
    if not listed or not all(isinstance(message, Mapping) for message in listed):
        return ("a list of messages",)
    wanted = {"role": ROLE_KEYS, "content": CONTENT_KEYS}
    names = {what: (layout.tags[f"{what}_tag"],) if f"{what}_tag" in layout.tags else usual
             for what, usual in wanted.items()}  # fmt: skip
    return tuple(
        f"a {what} in every message ({' or '.join(map(repr, own))})"
        for what, own in names.items()
        if not all(any(message.get(name) is not None for name in own) for message in listed)
    )


def contents(row: Mapping[str, Any], layout: Layout) -> list[Any]:
    """What the messages of a row say, each as it is stored; nothing where they are no messages."""
    if lacks(row, layout):
        return []
    return [layout.content(message, "") for message in as_list(layout.messages(row, "")) or ()]


def marked(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a mark stands in some text of a row."""
    return any(mark in said for said in contents(row, layout) if isinstance(said, str) for mark in MARKS)


def in_singular(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row has `from` and `value`, and its medium under a name in the singular: as LLaVA writes it."""
    if not any(given_at_all(row.get(name)) for name in SINGULAR) or lacks(row, layout):
        return False
    return all("from" in message and "value" in message for message in as_list(layout.messages(row, "")) or ())


def signs(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row has marks in its text, and is not LLaVA's.

    >>> signs({"messages": [{"role": "user", "content": "Who?<image>"}]}, Layout())
    True
    """
    return marked(row, layout) and not in_singular(row, layout)
