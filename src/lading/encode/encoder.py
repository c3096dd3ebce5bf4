"""One conversation → its tokens, labels and tensors, for one processor. No corpus is needed for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lading import media
from lading.encode.processor_facts import ProcessorFacts, load_processor, read_processor
from lading.encode.template import NO_OPTIONS
from lading.encode.tokeniser import Sized, TokenisedSample
from lading.errors import ConfigError, Reason, SkipSample
from lading.family import Pixels, TokenizerChoice
from lading.fields import MEDIA_KINDS, SEQUENCE_FIELDS, MediaKind
from lading.media import pixels as media_pixels
from lading.media.normalise import normalised
from lading.records import Conversation, Encoded, Footprint, Length, MediaPart, Size
from lading.tensors import declared_field


@dataclass(frozen=True, kw_only=True, slots=True)
class Encoder:
    """Encodes conversations for one processor: sizes first (`sized`), then tokens (`tokenise`), pixels last."""

    facts: ProcessorFacts
    pixels: Pixels = "model"
    draft: bool = False
    loss_weights: bool = False
    """Whether each sample has `loss_weights` beside its labels."""

    def __post_init__(self) -> None:
        if self.facts.raw is None and (self.pixels == "uint8" or self.draft):
            raise ConfigError(
                found=f"{'draft' if self.draft else 'uint8 pixels'} for {self.facts.family.title}",
                wanted="pixels='model' and draft=False with this processor",
                consequence="its own image processor alone knows how its pixels are made",
                where="Loader",
            )

    @classmethod
    def of(
        cls,
        processor: Any,
        family: str | None = None,
        *,
        tokenizer: TokenizerChoice = "auto",
        template_options: Mapping[str, Any] = NO_OPTIONS,
        pixels: Pixels = "model",
        draft: bool = False,
        loss_weights: bool = False,
    ) -> Encoder:
        """The encoder of a processor: an object, a folder, a hub id or `toy:NAME`."""
        facts = read_processor(load_processor(processor), family, tokenizer, template_options)
        return cls(facts=facts, pixels=pixels, draft=draft, loss_weights=loss_weights)

    def in_bytes(self) -> Encoder:
        """The same encoder with pixels in bytes, where they can be: they are joined before they are scaled."""
        return self if self.facts.raw is None else replace(self, pixels="uint8")

    def encode(self, conversation: Conversation) -> Encoded:
        """A conversation with all its tensors; `SkipSample` where it cannot be used."""
        tokenised = self.tokenise([self.sized(conversation)])[0]
        if isinstance(tokenised, SkipSample):
            raise tokenised
        return self.with_media(tokenised)

    def sized(self, conversation: Conversation) -> Sized:
        """A conversation, and what each of its media takes up."""
        return conversation, self.footprints(conversation)

    def tokenise(self, samples: Sequence[Sized]) -> list[TokenisedSample | SkipSample]:
        """Tokens and labels of many conversations, without pixels. A refusal stands in its sample's place."""
        return self.facts.tokeniser.tokenised(samples)

    def measure(self, samples: Sequence[Sized]) -> list[Length | SkipSample]:
        """What many conversations cost."""
        return self.facts.tokeniser.lengths(samples)

    def footprints(self, conversation: Conversation) -> list[Footprint]:
        """What each medium takes up, in reading order; the media of one kind are looked at together."""
        parts = conversation.media
        if not parts:
            return []
        sizes: dict[MediaKind, list[Size]] = {kind: [] for kind in MEDIA_KINDS}
        for part in parts:
            self._refuse_unsupported(part, conversation.key.where)
            sizes[part.kind].append(media.measure(part))
        found = {kind: iter(self.facts.geometries[kind].footprints(own)) for kind, own in sizes.items() if own}
        return [next(found[part.kind]) for part in parts]

    def with_media(self, tokenised: TokenisedSample) -> Encoded:
        """A tokenised sample as tensors, those of its media included: this decodes them."""
        parts, encoded = tokenised.conversation.media, tokenised.encoded(loss_weights=self.loss_weights)
        if not parts:
            return encoded
        # What each medium was measured to take up travels with its place in the tokens. A template may write the media
        # of one kind before those of another (LLaVA-OneVision's does), but those of one kind in their order.
        measured = [span.footprint for span in tokenised.media]
        of_kind = {kind: iter([own for own in measured if own.kind == kind]) for kind in MEDIA_KINDS}
        made = self._media_tensors(tokenised.text, parts, [next(of_kind[part.kind]) for part in parts])
        media_pixels.checked_ids(made, tokenised.ids)
        for name in made.keys() - SEQUENCE_FIELDS.keys():  # a processor gives the tokens, too
            declared_field(name, self.facts.family.table)
        return encoded.with_tensors({name: made[name] for name in self.facts.family.fields if name in made})

    def _media_tensors(
        self, text: str, parts: Sequence[MediaPart], footprints: Sequence[Footprint]
    ) -> Mapping[str, Any]:
        raw, processor = self.facts.raw, self.facts.processor
        if raw is None:
            return self.facts.family.tensors(processor, text, parts, footprints)
        made = raw.tensors(processor, text, parts, footprints, draft=self.draft)
        return made if self.pixels == "uint8" else normalised(made, raw.scales)

    def _refuse_unsupported(self, part: MediaPart, where: str) -> None:
        if part.kind not in self.facts.geometries:
            raise SkipSample(
                Reason.UNSUPPORTED_MEDIA,
                found=f"{part.kind} in a sample for {self.facts.family.title}",
                wanted=" or ".join(self.facts.geometries) or "text alone",
                where=where,
            )
