"""Row → `Conversation` of typed parts. This room opens no media.

formats            the table of formats:
  varieties          lists of messages: ShareGPT's, LLaVA's, OpenAI's, TRL's
  prompt_completion  TRL's other form
  alpaca             instruction, input and output in columns of their own
  question_answer    question and answer in columns of their own
  cauldron           pairs of user and assistant
  presets            well-known data sets, by name: CORD-v2, CommonVoice 17, MedPix, RDR, UniMM-Chat
recognise          which of them a source is, by some of its rows; media in a column that nobody reads
preference         a chosen and a rejected answer
turns, parts       what they share: lists of messages, typed parts, what every conversation must have
extras             what a message says besides: weights, thoughts, calls of tools
keys               which keys are read, which say how to train, and what is said of the others
layout             where a row keeps what, where its media lie, and what it calls roles
shorten            where a conversation that is too long may end
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
