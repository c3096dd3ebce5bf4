"""Conversation + sizes + family → ids, labels and spans. This room does not pad, shift, drop or open media.

    render   conversation → the chat template's own text
    spans    that text → what the assistant says, by walking the turns
    expand   marks → the medium's text; pads repeated as often as the medium has features
    encode   all of it, many conversations at a time

Token ids equal the processor's own for the same conversation; a contract test holds that over every family.
"""

from lading.tokenise.encode import Outline, Tokeniser

__all__ = ["Outline", "Tokeniser"]
