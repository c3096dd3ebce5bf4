"""Sample number → conversation, length or tensors: the rooms from `sources` to `media`, wired."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from lading import media
from lading.conversation import Layout, read_conversation, shorten
from lading.encode import Outline
from lading.encode.processor_facts import Border
from lading.encode.tokeniser import Sized
from lading.errors import ConfigError, ExactnessError, Reason, SkipSample
from lading.family import Pixels
from lading.fields import MEDIA_KINDS, MediaKind
from lading.media import pixels as media_pixels
from lading.media.normalise import normalised
from lading.records import (
    Conversation,
    Cut,
    Dropped,
    Encoded,
    Footprint,
    Length,
    MediaPart,
    SampleKey,
    Size,
)
from lading.samples.layouts import source_layouts
from lading.samples.skip import SkipPolicy
from lading.sources import Corpus

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A corpus seen through one processor."""

    corpus: Corpus
    border: Border
    policy: SkipPolicy = field(default_factory=SkipPolicy)
    cuts: Mapping[int, Cut] = field(default_factory=dict)
    """Samples of which only a part is used, because they are too long (`loader.truncation`)."""
    pixels: Pixels = "model"
    draft: bool = False
    layouts: tuple[Layout, ...] = ()
    """How the rows of each source are read; found out here, once, and carried along to workers."""

    def __post_init__(self) -> None:
        if not self.layouts:
            object.__setattr__(self, "layouts", source_layouts(self.corpus))
        if self.border.raw is None and (self.pixels == "uint8" or self.draft):
            raise ConfigError(
                found=f"{'draft' if self.draft else 'uint8 pixels'} for {self.border.family.title}",
                wanted="pixels='model' and draft=False with this processor",
                consequence="its own image processor alone knows how its pixels are made",
                where="Loader",
            )

    def __len__(self) -> int:
        return len(self.corpus)

    def conversation(self, index: int) -> Conversation:
        """What sample `index` says, up to its cut if it has one."""
        return self.read(self.corpus.key(index))

    def read(self, key: SampleKey) -> Conversation:
        """The same by the sample's name, where that is known already."""
        whole = read_conversation(self.corpus.named(key), self.layouts[self.corpus.locate(key.index)[0]])
        return shorten(whole, self.cuts[key.index]) if key.index in self.cuts else whole

    def outline(self, indices: Sequence[int]) -> list[Outline | Dropped]:
        """Tokens and labels of many samples, without pixels; what cannot be used says why."""
        return self._each(indices, self.border.tokeniser.outline)

    def measure(self, indices: Sequence[int]) -> list[Length | Dropped]:
        """What many samples cost."""
        return self._each(indices, self.border.tokeniser.lengths)

    def _each(self, indices: Sequence[int], work: Callable[[list[Sized]], list[T | SkipSample]]) -> list[T | Dropped]:
        """What `work` makes of many samples at once; what cannot be used says why."""
        keys = [self.corpus.key(index) for index in indices]
        read = [self.policy.attempt(key, lambda key=key: self._sized(key)) for key in keys]  # type: ignore[misc]  # mypy cannot infer a lambda's default
        good = [item for item in read if not isinstance(item, Dropped)]
        made = self.policy.attempt_all(
            [conversation.key for conversation, _ in good],
            together=lambda: work(good),
            single=lambda place: work([good[place]])[0],
        )
        waiting = iter(made)
        results: list[T | Dropped] = []
        for key, item in zip(keys, read, strict=True):
            outcome = item if isinstance(item, Dropped) else next(waiting)
            results.append(self.policy.settle(key, outcome) if isinstance(outcome, SkipSample) else outcome)
        return results

    def encode(self, index: int, counted: int | None = None) -> Encoded | Dropped:
        """Sample `index` as tensors, pixels included. A length other than the counted one is an error of ours."""
        return self.encode_all([index], None if counted is None else [counted])[0]

    def encode_all(self, indices: Sequence[int], counted: Sequence[int] | None = None) -> list[Encoded | Dropped]:
        """The same of several samples. All are tokenised before the first pixel is decoded: pixels drive everything
        else out of the caches, and a sample that is tokenised right behind a picture takes three times as long.
        """
        outlines = self.outline(indices)
        if counted is not None:
            for outline, length in zip(outlines, counted, strict=True):
                _check_length(outline, length)
        return [
            outline
            if isinstance(outline, Dropped)
            else self.policy.attempt(outline.conversation.key, partial(self._with_pixels, outline))
            for outline in outlines
        ]

    def encode_conversation(self, conversation: Conversation) -> Encoded:
        """A conversation from elsewhere, as tensors."""
        outline = self.border.tokeniser.outline([(conversation, self.footprints(conversation))])[0]
        if isinstance(outline, SkipSample):
            raise outline
        return self._with_pixels(outline)

    def _sized(self, key: SampleKey) -> Sized:
        conversation = self.read(key)
        return conversation, self.footprints(conversation)

    def footprints(self, conversation: Conversation) -> list[Footprint]:
        """What each medium takes up, in reading order; the media of one kind are looked at together."""
        parts = conversation.media
        if not parts:
            return []
        sizes: dict[MediaKind, list[Size]] = {kind: [] for kind in MEDIA_KINDS}
        for part in parts:
            self._refuse_unsupported(part, conversation.key.where)
            sizes[part.kind].append(media.measure(part))
        found = {kind: iter(self.border.geometries[kind].footprints(own)) for kind, own in sizes.items() if own}
        return [next(found[part.kind]) for part in parts]

    def _refuse_unsupported(self, part: MediaPart, where: str) -> None:
        if part.kind not in self.border.geometries:
            raise SkipSample(
                Reason.UNSUPPORTED_MEDIA,
                found=f"{part.kind} in a sample for {self.border.family.title}",
                wanted=" or ".join(self.border.geometries) or "text alone",
                where=where,
            )

    def _with_pixels(self, outline: Outline) -> Encoded:
        family, parts = self.border.family, outline.conversation.media
        if not parts:
            return outline.encoded()
        # What each medium was measured to take up travels with its place in the tokens. A template may write the media
        # of one kind before those of another (LLaVA-OneVision's does), but those of one kind in their order.
        measured = [span.footprint for span in outline.media]
        of_kind = {kind: iter([own for own in measured if own.kind == kind]) for kind in MEDIA_KINDS}
        made = self._media_tensors(outline.text, parts, [next(of_kind[part.kind]) for part in parts])
        media_pixels.checked_ids(made, outline.ids)
        return outline.encoded().with_tensors({name: made[name] for name in family.fields if name in made})

    def _media_tensors(
        self, text: str, parts: Sequence[MediaPart], footprints: Sequence[Footprint]
    ) -> Mapping[str, Any]:
        border = self.border
        if border.raw is None:
            return border.family.tensors(border.processor, text, parts, footprints)
        made = border.raw.tensors(border.processor, text, parts, footprints, draft=self.draft)
        return made if self.pixels == "uint8" else normalised(made, border.raw.scales)

    def in_bytes(self) -> Samples:
        """The same samples with pixels in bytes, where they can be: they are joined before they are scaled."""
        return self if self.border.raw is None else replace(self, pixels="uint8")


def _check_length(outline: Outline | Dropped, counted: int) -> None:
    if isinstance(outline, Dropped) or len(outline.ids) == counted:
        return
    raise ExactnessError(
        found=f"{len(outline.ids)} tokens of {outline.conversation.key}",
        wanted=f"{counted}, as counted",
        consequence="its media changed since it was counted, or the count is wrong: see `lading count --again`",
    )
