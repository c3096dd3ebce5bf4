"""Conversation + sizes + family → ids, labels and spans. This room does not pad, shift, drop or open media.

    processor_facts  what is known of a processor, read once
    template         conversation → the chat template's own text → what the assistant says, by walking the turns
    expand           marks → the medium's text; pads repeated as often as the medium has features; spans → labels
    text_encoder     text → ids, and which tokens a span of it is; by `gigatoken` where that makes the same ids
    tokeniser        all of it, many conversations at a time: tokens, labels, lengths
    encoder          `Encoder`: the same with the tensors of the media

Token ids equal the processor's own for the same conversation; a contract test holds that over every family.
"""

from lading.encode.encoder import Encoder
from lading.encode.tokeniser import TokenisedSample, Tokeniser

__all__ = ["Encoder", "TokenisedSample", "Tokeniser"]
