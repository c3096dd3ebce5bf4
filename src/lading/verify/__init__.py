"""Packed = unpacked, proven on the user's own data. Nothing here is needed to train.

    result    what was found
    choose    which samples are looked at
    alone     one conversation by itself, as its processor makes it
    labels    what is trained on in it, found by changing what the assistant says
    models    the model that both ways are fed to
    forward   what a model makes of its inputs: positions, hidden states, losses
    compare   a batch's documents beside themselves alone
    sight     who notices when somebody else's document changes
    check     the whole of it, over a corpus

Law: what is called "alone" never went through `tokenise`, `materialise` or `collate`.
"""

from lading.verify.check import verify
from lading.verify.result import Difference, Verification

__all__ = ["Difference", "Verification", "verify"]
