"""Row → `Conversation` of typed parts. This room opens no media.

sharegpt   from/value or role/content, with `<image>`, `<video>` and `<audio>` marks in the text
openai     content as a list of parts
alpaca     instruction, input and output in columns of their own
layout     where a row keeps what, and what it calls roles
shorten    where a conversation that is too long may end
validate   what every conversation must have
"""

from lading.conversation.layout import Layout
from lading.conversation.sharegpt import read_conversation
from lading.conversation.shorten import cuts, shorten

__all__ = ["Layout", "cuts", "read_conversation", "shorten"]
