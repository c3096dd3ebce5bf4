r"""The varieties of messages. They share their columns; what tells them apart is a sign in some of the rows.

sharegpt    marks in the text, media in lists beside the messages. `from`/`value` or `role`/`content`. Text is taken to
            the letter: what stands around a mark, a line break too, belongs to it.

    {"conversations": [{"from": "human", "value": "<image>Who is this?"}, {"from": "gpt", "value": "Ada."}],
     "images": ["ada.jpg"]}

llava       `from`/`value` with one picture (or clip) under `image` (`video`), and often an `id`. A line break before or
            behind a mark is a part of the mark: it parts picture and words in LLaVA's own prompt, and the templates of
            other models do that in their own way. A row with a clip alone may call it `<image>`, as LLaVA-Video does.
            Rows without a medium are text.

    {"id": "33471", "image": "bus/33471.jpg",
     "conversations": [{"from": "human", "value": "<image>\nWhich colour is it?"}, {"from": "gpt", "value": "Red."}]}

openai      content as a list of typed parts, media inside them (`parts.py` lists the types). `url` is a path or a data
            URL. Addresses on a network are refused by name, never fetched.

    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ada.jpg"}},
                                               {"type": "text", "text": "Who is this?"}]},
                  {"role": "assistant", "content": "Ada."}]}

trl         pictures in a column beside the messages, with or without parts that stand for them. In a row that has no
            place for its pictures they go before the first user's words, as TRL puts them.

    {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "Who is this?"}]},
                  {"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}], "images": ["ada.jpg"]}
    {"messages": [{"role": "user", "content": "Who is this?"}, {"role": "assistant", "content": "Ada."}],
     "images": ["ada.jpg"]}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation import parts
from lading.conversation.layout import CONTENT_KEYS, MESSAGE_COLUMNS, ROLE_KEYS, Layout, given_at_all
from lading.conversation.turns import MARKS, MEDIA_FIRST, WITH_BREAKS, TurnFormat, as_list, read_turns
from lading.fields import MEDIA_KINDS
from lading.records import Conversation, Row

PICTURES = TurnFormat(marks=WITH_BREAKS)
TOOLS: Mapping[str, tuple[str, ...]] = {"role": (), "content": ("tool_calls",)}
"""What a message may have in place of its role and content: who calls a tool may say nothing."""
CLIPS = TurnFormat(marks=WITH_BREAKS, kinds={**MARKS, "<image>": "video"})


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
        if not all(any(message.get(name) is not None for name in (*own, *TOOLS[what])) for message in listed)
    )


def is_sharegpt(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row has marks in its text, and is not LLaVA's.

    >>> is_sharegpt({"messages": [{"role": "user", "content": "Who?<image>"}]}, Layout())
    True
    """
    return _marked(row, layout) and not is_llava(row, layout)


def is_llava(row: Mapping[str, Any], layout: Layout) -> bool:
    r"""Whether a row has `from` and `value`, and its medium under a name in the singular.

    >>> messages = [{"from": "human", "value": "<image>\nWho?"}, {"from": "gpt", "value": "Ada."}]
    >>> is_llava({"conversations": messages, "image": "a.jpg"}, Layout()), is_llava({"messages": messages}, Layout())
    (True, False)
    """
    messages = _messages(row, layout) if any(given_at_all(row.get(name)) for name in ("image", "video")) else ()
    return bool(messages) and all("from" in message and "value" in message for message in messages)


def is_openai(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether some message of a row is a list of parts, none of which waits for a medium from beside.

    >>> is_openai({"messages": [{"role": "assistant", "content": [{"type": "text", "text": "Ada."}]}]}, Layout())
    True
    """
    typed = any(isinstance(content, list) for content in _contents(row, layout))
    return typed and not _has_bare_media(row, layout)


def is_trl(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row's media have typed places but stand beside, or have no places at all.

    >>> messages = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    >>> is_trl({"messages": messages, "images": ["a.jpg"]}, Layout()), is_trl({"messages": messages}, Layout())
    (True, False)
    """
    if _has_bare_media(row, layout):
        return True
    contents = _contents(row, layout)
    beside = any(layout.media(row, kind) for kind in MEDIA_KINDS)
    plain = bool(contents) and all(isinstance(own, str) for own in contents) and not _marked(row, layout)
    return beside and plain and all("role" in message for message in _messages(row, layout))


def read_llava(row: Row, layout: Layout) -> Conversation:
    r"""The conversation of a row in LLaVA's form.

    >>> from lading.records import SampleKey
    >>> messages = [{"from": "human", "value": "<image>\nWho?"}, {"from": "gpt", "value": "Ada."}]
    >>> key = SampleKey(index=0, source="s", where="d.json[0]")
    >>> value = {"conversations": messages, "image": "a.jpg"}
    >>> read_llava(Row(key=key, value=value), Layout()).messages[0].parts[1]
    TextPart(text='Who?')
    """
    clips_alone = bool(layout.media(row.value, "video")) and not layout.media(row.value, "image")
    return read_turns(row, layout, turn_format=CLIPS if clips_alone else PICTURES)


def read_trl(row: Row, layout: Layout) -> Conversation:
    return read_turns(row, layout, turn_format=MEDIA_FIRST)


def _messages(row: Mapping[str, Any], layout: Layout) -> list[Any] | tuple[Any, ...]:
    """The messages of a row; nothing where something is missing."""
    return () if lacks(row, layout) else as_list(layout.messages(row, "")) or ()


def _contents(row: Mapping[str, Any], layout: Layout) -> list[Any]:
    """What the messages of a row say, each as it is stored."""
    contents = [layout.tags.get("content_tag", ""), *CONTENT_KEYS]
    messages = _messages(row, layout)
    return [layout.content(own, "") for own in messages if any(own.get(name) is not None for name in contents)]


def _marked(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a mark stands in some text of a row."""
    return any(mark in content for content in _contents(row, layout) if isinstance(content, str) for mark in MARKS)


def _has_bare_media(row: Mapping[str, Any], layout: Layout) -> bool:
    """Whether a row has a media part without its medium."""
    listed = [part for content in _contents(row, layout) if isinstance(content, list) for part in content]
    return any(isinstance(part, Mapping) and parts.shows(part) and parts.reference(part) is None for part in listed)
