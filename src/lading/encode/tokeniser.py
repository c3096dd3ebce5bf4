"""Many conversations at a time, through the tokenizer's own threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lading.encode.expand import Spliced, are_pads, repeat_pads, splice
from lading.encode.frames import Frames
from lading.encode.labels import Encoding, labels_from_spans, token_span
from lading.encode.template import Render
from lading.encode.turns import Span, assistant_spans
from lading.encode.words import Words
from lading.errors import Reason, SkipSample
from lading.family import Medium, TurnStyle
from lading.fields import IGNORE_INDEX, MediaKind
from lading.records import Conversation, Document, Encoded, Footprint, Length, MediumSpan

T = TypeVar("T")
Sized = tuple[Conversation, Sequence[Footprint]]
"""A conversation, and what each of its media takes up."""
TOKEN_TYPES: Mapping[MediaKind, int] = {"image": 1, "video": 2, "audio": 3}
"""What transformers' processors write for a medium's tokens; text is 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A sample's tokens, labels and media places, known without a pixel."""

    conversation: Conversation
    text: str
    """What the chat template made of it, marks not yet replaced."""
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    spans: tuple[Span, ...]
    media: tuple[MediumSpan, ...]
    token_types: str | None = None

    @property
    def length(self) -> Length:
        """What the sample costs."""
        spoken = int(np.count_nonzero(self.labels != IGNORE_INDEX))
        return length_of(len(self.ids), spoken, [span.footprint for span in self.media])

    def _types(self) -> NDArray[np.int64]:
        types = np.zeros_like(self.ids)
        for span in self.media:
            for start, stop in span.runs:
                types[start:stop] = TOKEN_TYPES[span.footprint.kind]
        return types

    def encoded(self) -> Encoded:
        """The same as tensors."""
        import torch

        document = Document(key=self.conversation.key, tokens=len(self.ids), media=self.media)
        tensors = {"input_ids": torch.from_numpy(self.ids), "labels": torch.from_numpy(self.labels)}
        if self.token_types is not None:
            tensors[self.token_types] = torch.from_numpy(self._types())
        return Encoded(document=document, spans=self.spans, tensors=tensors)


def length_of(tokens: int, label_tokens: int, footprints: Sequence[Footprint]) -> Length:
    """What a sample of so many tokens costs whose media take up so much."""
    if not footprints:
        return Length(tokens=tokens, label_tokens=label_tokens)
    visual = [footprint for footprint in footprints if footprint.kind != "audio"]
    sounds = [own for footprint in footprints for own in (footprint, footprint.sound) if own and own.kind == "audio"]
    heard = sum(sum(footprint.sound.runs) for footprint in visual if footprint.sound is not None)
    return Length(
        tokens=tokens,
        label_tokens=label_tokens,
        visual_tokens=sum(sum(footprint.runs) for footprint in visual) - heard,
        audio_tokens=sum(sum(footprint.runs) for footprint in sounds),
        patches=sum(footprint.rows for footprint in visual),
        patch_pairs=sum(footprint.pairs for footprint in visual),
        images=sum(footprint.kind == "image" for footprint in visual),
        videos=sum(footprint.kind == "video" for footprint in visual),
        frames=sum(len(footprint.frames) for footprint in visual),
        audios=len(sounds),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Unexpanded:
    """A conversation's tokens before its media are put in."""

    ids: NDArray[np.int64]
    spans: tuple[Span, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rendered:
    conversation: Conversation
    text: str
    spliced: Spliced
    spans: list[Span]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokeniser:
    """Everything needed to tokenise for one family and one processor, read once at the border."""

    render: Render
    encode_batch: Callable[[list[str]], Sequence[Encoding]]
    turns: TurnStyle
    media: Mapping[MediaKind, Medium]
    pads: tuple[int, ...]
    """Token ids of the media's pads."""
    token_types: str | None = None
    find_spoken: Callable[[Conversation, str], list[Span]] | None = None
    """Finds what the assistant says where the template tells; `None`: by walking the turns."""
    words: Words | None = None
    """Counts most texts without tokenising them, where the tokenizer works by words."""
    frames: Frames | None = None
    """Counts most conversations in words alone without writing them out."""

    def outline(self, samples: Iterable[Sized]) -> list[Outline | SkipSample]:
        """Tokenise conversations whose media take up the given footprints. A refusal stands in its sample's place."""
        return self._each_encoded([self._rendered_or_skip(*sample) for sample in samples], self._finished_or_skip)

    def lengths(self, samples: Iterable[Sized]) -> list[Length | SkipSample]:
        """What the same conversations cost: the lengths of their outlines."""
        sized = list(samples)
        counted = [self._framed(*sample) for sample in sized]
        rendered = [None if counted[place] else self._rendered_or_skip(*own) for place, own in enumerate(sized)]
        for place, item in enumerate(rendered):
            counted[place] = self._counted(item) if isinstance(item, _Rendered) else counted[place]
        if self.words is not None:
            self._compare(sized, counted)
        left = [place for place, length in enumerate(counted) if length is None]
        waiting = [rendered[place] or self._rendered_or_skip(*sized[place]) for place in left]
        tokenised = iter(self._each_encoded(waiting, self._length_or_skip))
        return [next(tokenised) if length is None else length for length in counted]

    def _framed(self, conversation: Conversation, footprints: Sequence[Footprint]) -> Length | None:
        """The length of a conversation without media, if it can be told without writing it out."""
        if footprints or self.words is None or self.frames is None:
            return None
        return self.frames.length(conversation)

    def _counted(self, rendered: _Rendered) -> Length | None:
        """The length of a text by its words; `None` where it must be tokenised, or will be refused."""
        if self.words is None or not self.words.trusted:
            return None
        spliced, place = rendered.spliced, rendered.spliced.place
        spans = [(place(start), place(stop)) for start, stop in rendered.spans]
        found = self.words.tally(spliced.text, spans)
        runs = [run for footprint in spliced.footprints for run in footprint.runs]
        if found is None or found.pads != len(runs) or not found.spoken:
            return None
        return length_of(found.tokens + sum(runs) - len(runs), found.spoken, spliced.footprints)

    def _compare(self, sized: Sequence[Sized], counted: list[Length | None]) -> None:
        """Some of the lengths with those of the tokenizer; where they differ, words are not counted any more."""
        assert self.words is not None
        places = [place for place, length in enumerate(counted) if length is not None]
        chosen = self.words.to_compare(places)
        outlined = self.outline([sized[place] for place in chosen])
        if any(
            not isinstance(own, Outline) or own.length != counted[place]
            for place, own in zip(chosen, outlined, strict=True)
        ):
            self.words.distrust()
            counted[:] = [None] * len(counted)

    def _each_encoded(
        self, rendered: Sequence[_Rendered | SkipSample], work: Callable[[_Rendered, Encoding], T | SkipSample]
    ) -> list[T | SkipSample]:
        """What `work` makes of each text and its tokens; all texts are tokenised at once."""
        texts = [item.spliced.text for item in rendered if isinstance(item, _Rendered)]
        encodings = iter(self.encode_batch(texts) if texts else ())
        return [work(item, next(encodings)) if isinstance(item, _Rendered) else item for item in rendered]

    def _length_or_skip(self, rendered: _Rendered, encoding: Encoding) -> Length | SkipSample:
        """The length of an outline. Of text alone it is known without making one."""
        if not rendered.spliced.footprints and not self._padded(encoding):
            spans = [token_span(encoding, start, stop) for start, stop in rendered.spans]
            spoken = sum(stop - start for start, stop in spans)
            if spoken:
                return Length(tokens=len(encoding.ids), label_tokens=spoken)
        outline = self._finished_or_skip(rendered, encoding)
        return outline.length if isinstance(outline, Outline) else outline

    def _padded(self, encoding: Encoding) -> bool:
        return not frozenset(self.pads).isdisjoint(encoding.ids)

    def rendered(self, conversation: Conversation) -> tuple[str, list[Span]]:
        """A conversation's text, every mark left as the template wrote it, and what the assistant says in it."""
        text = self.render(conversation)
        return text, self._spoken(conversation, text)

    def unexpanded(self, text: str, spans: Sequence[Span]) -> Unexpanded:
        """Ids and spans of a rendered text: no media are needed."""
        encoding = self.encode_batch([text])[0]
        return Unexpanded(
            ids=np.array(encoding.ids, dtype=np.int64),
            spans=tuple(token_span(encoding, start, stop) for start, stop in spans),
        )

    def _spoken(self, conversation: Conversation, text: str) -> list[Span]:
        if self.find_spoken is not None:
            return self.find_spoken(conversation, text)
        marks = {kind: medium.mark for kind, medium in self.media.items()}
        return assistant_spans(text, conversation, self.turns, marks)

    def _rendered_or_skip(self, conversation: Conversation, footprints: Sequence[Footprint]) -> _Rendered | SkipSample:
        try:
            text = self.render(conversation)
            spans = self._spoken(conversation, text)
            spliced = splice(text, self.media, footprints, where=conversation.key.where)
        except SkipSample as skip:
            return skip
        return _Rendered(conversation=conversation, text=text, spliced=spliced, spans=spans)

    def _finished_or_skip(self, rendered: _Rendered, encoding: Encoding) -> Outline | SkipSample:
        try:
            return self._finished(rendered, encoding)
        except SkipSample as skip:
            return skip

    def _finished(self, rendered: _Rendered, encoding: Encoding) -> Outline:
        where = rendered.conversation.key.where
        expanded = repeat_pads(
            np.array(encoding.ids, dtype=np.int64), self.pads, rendered.spliced.footprints, where=where
        )
        place = rendered.spliced.place
        short_spans = [token_span(encoding, place(start), place(stop)) for start, stop in rendered.spans]
        spans = tuple((int(expanded.starts[start]), int(expanded.starts[stop])) for start, stop in short_spans)
        labels = labels_from_spans(expanded.ids, spans)
        # Features are never predicted, even where an assistant turn shows a medium.
        labels[are_pads(labels, self.pads)] = IGNORE_INDEX
        if not np.any(labels != IGNORE_INDEX):
            raise SkipSample(
                Reason.NO_LABEL_TOKENS, found="no token that the assistant says", wanted="at least one", where=where
            )
        return Outline(
            conversation=rendered.conversation,
            text=rendered.text,
            ids=expanded.ids,
            labels=labels,
            spans=spans,
            media=expanded.media,
            token_types=self.token_types,
        )
