"""Row → `Conversation` of typed parts. This room opens no media.

formats            the table of formats; one file for each:
  sharegpt           messages (from/value or role/content) with `<image>`, `<video>` and `<audio>` marks in their text
  llava              the same with one `image`, and line breaks around its mark
  openai             messages of typed parts, media inside
  trl                messages, media beside them, with bare parts or no places at all
  prompt_completion  TRL's other form
  alpaca             instruction, input and output in columns of their own
  question_answer    question and answer in columns of their own
  cauldron           pairs of user and assistant
  cord_v2, cv17, medpix, rdr, unimm_chat: well-known data sets, by name; one_exchange: what they share
recognise          which of them a source is, by some of its rows
unread             media in a column that nobody reads
turns, parts       what they share: lists of messages, typed parts
layout             where a row keeps what, where its media lie, and what it calls roles
shorten            where a conversation that is too long may end
validate           what every conversation must have
"""

from lading.conversation.formats import FORMATS, Format, find_format, read_conversation
from lading.conversation.layout import Layout
from lading.conversation.recognise import Recognised, recognise
from lading.conversation.shorten import cuts, shorten

__all__ = [
    "FORMATS",
    "Format",
    "Layout",
    "Recognised",
    "cuts",
    "find_format",
    "read_conversation",
    "recognise",
    "shorten",
]
