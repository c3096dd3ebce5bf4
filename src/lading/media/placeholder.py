"""The picture that keeps a vision tower busy when a batch has none.

Under FSDP or ZeRO every rank must run the same modules; a rank whose batch is text alone would leave the others waiting
for its vision gradients. The loader puts this picture into a document of its own, behind all real ones, where causality
and the document boundaries hide it from every real token.
"""

from __future__ import annotations

from lading.records import Conversation, MediaPart, Message, SampleKey, TextPart

SOURCE = "(placeholder)"
SIDE = 56


def conversation() -> Conversation:
    """A grey square and one word about it.

    >>> conversation().messages[-1].parts
    (TextPart(text='grey'),)
    """
    from PIL import Image

    picture = MediaPart(kind="image", reference=Image.new("RGB", (SIDE, SIDE), (128, 128, 128)))
    return Conversation(
        key=SampleKey(index=-1, source=SOURCE, where="made here"),
        messages=(
            Message(role="user", parts=(picture,)),
            Message(role="assistant", parts=(TextPart(text="grey"),)),
        ),
    )
