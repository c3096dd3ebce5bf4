"""The loader's samples → what is shown of them: some of a corpus, dropped ones and those with findings among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from lading.fields import IGNORE_INDEX, MEDIA_KINDS
from lading.ledger import Ledger
from lading.records import (
    Conversation,
    Document,
    Dropped,
    Finding,
    Footprint,
    LengthTable,
    MediaPart,
    PackPlan,
    SampleKey,
)
from lading.report.media import Budget, medium_view, name_of, spread
from lading.report.records import Gathered, MediumView, SampleView, TokensView, Turn

if TYPE_CHECKING:
    from lading.encode.tokeniser import TokenisedSample
    from lading.family import ThreeWay
    from lading.samples.samples import Samples

CHUNK = 32
LIMIT = 200
"""Samples of a page, unless more are asked for."""
REPLACEMENT = "\ufffd"
_OTHER_SIGHT = (
    "Some layers of this family see less (a window) or more (pictures both ways): the picture shows documents alone."
)


def gather(
    samples: Samples,
    *,
    lengths: LengthTable,
    plan: PackPlan,
    ledger: Ledger,
    findings: Sequence[Finding] = (),
    limit: int = LIMIT,
    progress: Callable[[int], None] = lambda done: None,
) -> Gathered:
    """Look at up to `limit` samples, their media included. What cannot be opened says why.

    shown = gather(loader.samples, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger)
    """
    entries = (*ledger.entries(), *ledger.truncations())
    marked = {entry["index"] for entry in entries} | {finding.key.index for finding in findings if finding.key}
    known = [index for index in marked if isinstance(index, int) and index < len(samples)]
    chosen = choose(len(samples), limit, marked=known, plan=plan)
    images, videos = (int(column[chosen].sum()) for column in (lengths.images, lengths.videos))
    budget = Budget.of(images + 4 * videos + int(lengths.audios[chosen].sum()))
    views: list[SampleView] = []
    for start in range(0, len(chosen), CHUNK):
        part = chosen[start : start + CHUNK]
        views += _views(samples, part, budget)
        progress(len(part))
    facts = samples.facts
    ids = {token for view in views if view.tokens is not None for token in view.tokens.ids.tolist()}
    return Gathered(
        samples=tuple(views),
        texts=token_texts(facts.processor.tokenizer, ids),
        family=facts.family.title,
        sight="" if facts.family.layers is None else _OTHER_SIGHT,
    )


def _views(samples: Samples, indices: Sequence[int], budget: Budget) -> Iterator[SampleView]:
    from lading.encode.tokeniser import TokenisedSample

    for index, tokenised in zip(indices, samples.tokenised(indices), strict=True):
        key = samples.corpus.key(index)
        if isinstance(tokenised, TokenisedSample):
            numbers = _reading_order(tokenised)
            footprints = {number: span.footprint for number, span in zip(numbers, tokenised.media, strict=True)}
            in_order = [footprints[number] for number in sorted(footprints)]
            turns = _turns(samples, tokenised.conversation, in_order, budget)
            yield SampleView(key=key, turns=turns, tokens=tokens_view(tokenised, samples.facts.three_way))
            continue
        # What cannot be tokenised may still be read.
        read = samples.policy.attempt(key, partial(samples.conversation, index))
        turns = () if isinstance(read, Dropped) else _turns(samples, read, (), budget)
        yield SampleView(key=key, turns=turns, trouble=tokenised.detail)


def _turns(
    samples: Samples, conversation: Conversation, footprints: Sequence[Footprint], budget: Budget
) -> tuple[Turn, ...]:
    media = zip_longest(conversation.media, footprints)
    views = iter([_medium(samples, conversation.key, part, footprint, budget) for part, footprint in media])
    return tuple(
        Turn(
            role=message.role,
            parts=tuple(next(views) if isinstance(part, MediaPart) else part.text for part in message.parts),
        )
        for message in conversation.messages
    )


def _medium(
    samples: Samples, key: SampleKey, part: MediaPart, footprint: Footprint | None, budget: Budget
) -> MediumView:
    made = samples.policy.attempt(key, partial(medium_view, part, footprint, budget))
    if isinstance(made, Dropped):
        return MediumView(kind=part.kind, name=name_of(part), trouble=made.detail)
    return budget.take(made)


def choose(total: int, limit: int, *, marked: Sequence[int], plan: PackPlan) -> list[int]:
    """At most `limit` of `total` samples, ascending: a quarter of them `marked` (dropped, or with a finding), a quarter
    those of the first packs, and the rest spread over the corpus.

    >>> from lading.plan import make_plan
    >>> from lading.records import LengthTable
    >>> plan = make_plan(LengthTable.of(tokens=np.full(100, 5)), pack_size=10)
    >>> chosen = choose(100, 8, marked=[97, 98, 99], plan=plan)
    >>> len(chosen), 97 in chosen, set(plan.pack(plan.order[0, 0]).tolist()) <= set(chosen)
    (8, True, True)
    """
    if total <= limit:
        return list(range(total))
    chosen: set[int] = set()
    known = sorted(marked)
    _fill(chosen, (known[place] for place in spread(len(known), max(1, limit // 4))), limit)
    packs = (index for number in plan.order.ravel()[:limit].tolist() for index in plan.pack(number).tolist())
    _fill(chosen, packs, min(limit, len(chosen) + max(1, limit // 4)))
    _fill(chosen, spread(total, limit - len(chosen)), limit)
    _fill(chosen, range(total), limit)  # where some of those were chosen already
    return sorted(chosen)


def _fill(chosen: set[int], more: Iterable[int], limit: int) -> None:
    for index in more:
        if len(chosen) >= limit:
            return
        chosen.add(index)


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
