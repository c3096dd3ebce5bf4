"""A tokenised sample → its tokens as they are shown: runs of a medium's token collapsed, each id with a text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lading.fields import IGNORE_INDEX, MEDIA_KINDS
from lading.records import Document
from lading.report.records import TokensView

if TYPE_CHECKING:
    from lading.encode import TokenisedSample
    from lading.family import ThreeWay

REPLACEMENT = "\ufffd"


def tokens_view(tokenised: TokenisedSample, three_way: ThreeWay | None) -> TokensView:
    """The tokens of a sample, with what is trained on and where each stands."""
    from lading.packing.pack import document_positions

    document = Document(key=tokenised.conversation.key, tokens=len(tokenised.ids), media=tokenised.media)
    positions: NDArray[Any] = document_positions(document, three_way).numpy()
    # Of four rows the first are plain positions, which are the tokens' own numbers.
    positions = positions[None] if three_way is None else positions[1:]
    kept = np.ones(len(tokenised.ids), dtype=bool)
    medium = np.full(len(tokenised.ids), -1, dtype=np.int64)
    for number, span in zip(_reading_order(tokenised), tokenised.media, strict=True):
        for start, stop in span.runs:
            kept[start + 1 : stop] = False
            medium[start:stop] = number
    starts = np.flatnonzero(kept)
    stops = np.append(starts[1:], len(kept))
    return TokensView(
        ids=tokenised.ids[starts],
        counts=stops - starts,
        trained=tokenised.labels[starts] != IGNORE_INDEX,
        first=positions[:, starts].T,
        last=positions[:, stops - 1].T,
        medium=medium[starts],
    )


def _reading_order(tokenised: TokenisedSample) -> list[int]:
    """Which of the conversation's media each span shows. A template may write one kind before another, but those of
    one kind in their order.
    """
    parts = tokenised.conversation.media
    places = {kind: iter([at for at, part in enumerate(parts) if part.kind == kind]) for kind in MEDIA_KINDS}
    return [next(places[span.footprint.kind]) for span in tokenised.media]


def token_texts(tokenizer: Any, ids: Iterable[int]) -> Mapping[int, str]:
    """What each token says, spaces included; one that is only a part of a character, in hexadecimal."""
    every = sorted(set(ids))
    backend = tokenizer.backend_tokenizer
    # Some decoders take the space away from a token that stands first: each is read behind another.
    before = backend.encode("a", add_special_tokens=False).ids[-1:]
    lead = len(backend.decode(before, skip_special_tokens=False))
    texts = backend.decode_batch([[*before, token] for token in every], skip_special_tokens=False)
    return {
        token: _in_bytes(backend.id_to_token(token)) if REPLACEMENT in text else text[lead:]
        for token, text in zip(every, texts, strict=True)
    }


def _in_bytes(piece: str | None) -> str:
    """A piece of a byte-level vocabulary as the bytes it stands for; any other as it is written.

    >>> _in_bytes("ðŁĺ")
    '⟨F0 9F 98⟩'
    """
    if piece is None or not set(piece) <= set(_BYTES):
        return piece or REPLACEMENT
    return "⟨" + " ".join(f"{_BYTES[letter]:02X}" for letter in piece) + "⟩"


def _byte_letters() -> dict[str, int]:
    """The letter that byte-level vocabularies write for each byte: its own if it can be seen, else one from 256 up."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(hidden)}


_BYTES = _byte_letters()
