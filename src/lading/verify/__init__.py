"""Packed = unpacked, proven on the user's own data. Nothing here is needed to train.

    result    what was found
    alone     one conversation by itself, as its processor makes it, and what is trained on in it
    model     the model that both ways are fed to, and what it makes of its inputs
    compare   a batch's documents beside themselves alone, and which of them see another
    check     the whole of it, over some samples of a corpus

Law: what is called "alone" has its tokens, labels and pixels from the processor, not from `encode` or `packing`.
"""

from lading.verify.check import verify
from lading.verify.result import Difference, Verification

__all__ = ["Difference", "Verification", "verify"]
