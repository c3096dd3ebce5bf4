r"""LLaVA: ShareGPT's `from`/`value` with one picture (or clip) under `image` (`video`), and often an `id`.

    {"id": "33471", "image": "bus/33471.jpg",
     "conversations": [{"from": "human", "value": "<image>\nWhich colour is it?"}, {"from": "gpt", "value": "Red."}]}

A line break before or behind a mark is a part of the mark: it parts picture and words in LLaVA's own prompt, and the
chat templates of other models do that in their own way. A row with a clip alone may call it `<image>`, as LLaVA-Video
does. Rows without a medium are text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lading.conversation.layout import Layout
from lading.conversation.sharegpt import in_singular
from lading.conversation.turns import MARKS, WITH_BREAKS, TurnFormat, read_turns
from lading.records import Conversation, Row

PICTURES = TurnFormat(marks=WITH_BREAKS)
CLIPS = TurnFormat(marks=WITH_BREAKS, kinds={**MARKS, "<image>": "video"})


def signs(row: Mapping[str, Any], layout: Layout) -> bool:
    r"""Whether a row is LLaVA's: `from` and `value`, and its medium under a name in the singular.

    >>> talk = [{"from": "human", "value": "<image>\nWho?"}, {"from": "gpt", "value": "Ada."}]
    >>> signs({"conversations": talk, "image": "a.jpg"}, Layout()), signs({"conversations": talk}, Layout())
    (True, False)
    """
    return in_singular(row, layout)


def read(row: Row, layout: Layout) -> Conversation:
    r"""The conversation a row holds.

    >>> from lading.records import SampleKey
    >>> talk = [{"from": "human", "value": "<image>\nWho?"}, {"from": "gpt", "value": "Ada."}]
    >>> key = SampleKey(index=0, source="s", where="d.json[0]")
    >>> read(Row(key=key, value={"conversations": talk, "image": "a.jpg"}), Layout()).messages[0].parts[1]
    TextPart(text='Who?')
    """
    value = row.value
    clips_alone = bool(layout.media(value, "video")) and not layout.media(value, "image")
    return read_turns(row, layout, turn_format=CLIPS if clips_alone else PICTURES)
