"""Conversations and the footprints of their media → tokens and labels, many at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from lading.encode.expand import Spliced, are_pads, labels_from_spans, repeat_pads, runs_of, splice
from lading.encode.template import Render, assistant_spans
from lading.encode.text_encoder import EncodedText, EncodeTexts, Span
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
class TokenisedSample:
    """A sample's tokens, labels and media places, known without a pixel."""

    conversation: Conversation
    text: str
    """What the chat template made of it, marks not yet replaced."""
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    spans: tuple[Span, ...]
    weights: tuple[float, ...]
    """How much the loss of each of these spans counts."""
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

    def _loss_weights(self) -> NDArray[np.float32]:
        """How much the loss of each token counts that has a label; 0 where there is none."""
        weights = np.zeros(len(self.ids), dtype=np.float32)
        for (start, stop), weight in zip(self.spans, self.weights, strict=True):
            weights[start:stop] = weight
        weights[self.labels == IGNORE_INDEX] = 0
        return weights

    def encoded(self, *, loss_weights: bool = False) -> Encoded:
        """The same as tensors."""
        import torch

        document = Document(key=self.conversation.key, tokens=len(self.ids), media=self.media)
        tensors = {"input_ids": torch.from_numpy(self.ids), "labels": torch.from_numpy(self.labels)}
        if loss_weights:
            tensors["loss_weights"] = torch.from_numpy(self._loss_weights())
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
class _Rendered:
    conversation: Conversation
    text: str
    spliced: Spliced
    spans: list[Span]
    """What the assistant says."""
    weights: list[float]
    """How much the loss of each of these spans counts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tokeniser:
    """Everything needed to tokenise for one family and one processor."""

    render: Render
    encode_texts: EncodeTexts
    turns: TurnStyle
    media: Mapping[MediaKind, Medium]
    pads: tuple[int, ...]
    """Token ids of the media's pads."""
    token_types: str | None = None
    find_spoken: Callable[[Conversation, str], list[Span]] | None = None
    """Finds what the assistant says where the template tells; `None`: by walking the turns."""

    def tokenised(self, samples: Iterable[Sized]) -> list[TokenisedSample | SkipSample]:
        """Tokenise conversations whose media take up the given footprints. A refusal stands in its sample's place."""
        return self._each_encoded(samples, self._tokenised)

    def lengths(self, samples: Iterable[Sized]) -> list[Length | SkipSample]:
        """What the same conversations take up, without making the samples themselves."""
        return self._each_encoded(samples, self._length)

    def rendered(self, conversation: Conversation) -> tuple[str, list[Span]]:
        """A conversation's text, every mark left as the template wrote it, and what the assistant says in it."""
        text = self.render(conversation)
        if self.find_spoken is not None:
            return text, self.find_spoken(conversation, text)
        marks = {kind: medium.mark for kind, medium in self.media.items()}
        return text, assistant_spans(text, conversation, self.turns, marks)

    def _each_encoded(
        self, samples: Iterable[Sized], work: Callable[[_Rendered, EncodedText], T]
    ) -> list[T | SkipSample]:
        """What `work` makes of each conversation and its tokens; all texts are encoded at once."""
        rendered = [self._rendered_or_skip(*sample) for sample in samples]
        encoded = iter(self.encode_texts([item.spliced.text for item in rendered if isinstance(item, _Rendered)]))
        made: list[T | SkipSample] = []
        for item in rendered:
            try:
                made.append(work(item, next(encoded)) if isinstance(item, _Rendered) else item)
            except SkipSample as skip:
                made.append(skip)
        return made

    def _rendered_or_skip(self, conversation: Conversation, footprints: Sequence[Footprint]) -> _Rendered | SkipSample:
        try:
            text, spans = self.rendered(conversation)
            spliced = splice(text, self.media, footprints, where=conversation.key.where)
            weights = _weights(conversation, spans)
        except SkipSample as skip:
            return skip
        return _Rendered(conversation=conversation, text=text, spliced=spliced, spans=spans, weights=weights)

    def _length(self, rendered: _Rendered, encoded: EncodedText) -> Length:
        pads = are_pads(encoded.ids, self.pads)
        footprints, where = rendered.spliced.footprints, rendered.conversation.key.where
        runs = runs_of(footprints, int(np.count_nonzero(pads)), where=where)
        # Features are never predicted, even where an assistant turn shows a medium.
        spoken = sum(
            stop - start - (int(np.count_nonzero(pads[start:stop])) if runs else 0)
            for (start, stop), weight in zip(_token_spans(rendered, encoded), rendered.weights, strict=True)
            if weight
        )
        _refuse_unlabelled(spoken, where)
        return length_of(len(encoded.ids) + sum(runs) - len(runs), spoken, footprints)

    def _tokenised(self, rendered: _Rendered, encoded: EncodedText) -> TokenisedSample:
        where = rendered.conversation.key.where
        expanded = repeat_pads(encoded.ids, self.pads, rendered.spliced.footprints, where=where)
        starts = expanded.starts
        spans = tuple((int(starts[start]), int(starts[stop])) for start, stop in _token_spans(rendered, encoded))
        trained = [span for span, weight in zip(spans, rendered.weights, strict=True) if weight]
        labels = labels_from_spans(expanded.ids, trained)
        labels[are_pads(labels, self.pads)] = IGNORE_INDEX
        _refuse_unlabelled(int(np.count_nonzero(labels != IGNORE_INDEX)), where)
        return TokenisedSample(
            conversation=rendered.conversation,
            text=rendered.text,
            ids=expanded.ids,
            labels=labels,
            spans=spans,
            weights=tuple(rendered.weights),
            media=expanded.media,
            token_types=self.token_types,
        )


def _token_spans(rendered: _Rendered, encoded: EncodedText) -> list[Span]:
    """The tokens that the assistant says, before pads are repeated."""
    place = rendered.spliced.place
    return [encoded.token_span(place(start), place(stop)) for start, stop in rendered.spans]


def _weights(conversation: Conversation, spans: Sequence[Span]) -> list[float]:
    """The weight of each span that the assistant says: that of its message."""
    weights = [message.weight for message in conversation.messages if message.role == "assistant"]
    if len(weights) == len(spans):
        return weights
    if all(weight == 1 for weight in weights):
        return [1.0] * len(spans)
    raise SkipSample(
        Reason.TEMPLATE_REFUSED,
        found=f"weights of {len(weights)} answers, which the chat template writes as {len(spans)}",
        wanted="one turn for each answer that has a weight of its own",
        where=conversation.key.where,
    )


def _refuse_unlabelled(spoken: int, where: str) -> None:
    if not spoken:
        raise SkipSample(
            Reason.NO_LABEL_TOKENS,
            found="no token of an answer that is trained on",
            wanted="at least one",
            where=where,
        )
