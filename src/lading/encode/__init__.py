"""Conversation + sizes + family → ids, labels and spans. This room does not pad, shift, drop or open media.

    render   conversation → the chat template's own text
    spans    that text → what the assistant says, by walking the turns
    expand   marks → the medium's text; pads repeated as often as the medium has features
    labels   spans → labels; where only ids are at hand, `search` finds the turns in them
    encode   all of it, many conversations at a time
    words    a text → how many tokens it has, words looked up; `word_pattern` cuts them
    frames   a conversation in words → its length, not written out; `opaque` says when that is safe

Token ids equal the processor's own for the same conversation; a contract test holds that over every family.
"""

from lading.encode.encoder import Encoder
from lading.encode.tokeniser import TokenisedSample, Tokeniser

__all__ = ["Encoder", "TokenisedSample", "Tokeniser"]
