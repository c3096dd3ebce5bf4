"""Eight bytes for a sample or a medium: enough to notice two that are alike, and little enough for a large corpus."""

from __future__ import annotations

import os
from hashlib import blake2b
from typing import BinaryIO

from lading.records import Conversation, TextPart

EDGE = 4096
"""Bytes at each end of a medium that are looked at. Two that agree there are compared in full."""


def digest(*pieces: bytes) -> int:
    """A number for these bytes, never 0."""
    made = blake2b(digest_size=8)
    for piece in pieces:
        made.update(len(piece).to_bytes(8))
        made.update(piece)
    return int.from_bytes(made.digest()) or 1


def sample_digest(conversation: Conversation) -> int:
    """Of what a conversation says and shows, whatever else stands in its row."""
    pieces: list[bytes] = []
    for message in conversation.messages:
        pieces.append(message.role.encode())
        for part in message.parts:
            said = part.text if isinstance(part, TextPart) else f"\0{part.kind}{_name(part.reference)}{part.options}"
            pieces.append(said.encode("utf-8", "surrogatepass"))
    return digest(*pieces)


def path_digest(path: str) -> int:
    """Of a path, however it is spelled."""
    return digest(os.path.normpath(path).encode("utf-8", "surrogateescape"))


def content_digest(file: BinaryIO, size: int) -> int:
    """Of a file's size and both of its ends."""
    file.seek(0)
    head = file.read(EDGE)
    file.seek(max(0, size - EDGE))
    return digest(size.to_bytes(8), head, file.read(EDGE))


def _name(reference: object) -> str:
    if isinstance(reference, bytes):
        return blake2b(reference, digest_size=16).hexdigest()
    return os.path.normpath(reference) if isinstance(reference, str) else repr(reference)
