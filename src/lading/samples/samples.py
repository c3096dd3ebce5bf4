"""Sample number → conversation, length or tensors: a corpus, and the encoder that its conversations go through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from lading.cache import Cache
from lading.conversation import Layout, read_conversation, shorten
from lading.encode import Encoder, TokenisedSample
from lading.encode.processor_facts import ProcessorFacts
from lading.encode.tokeniser import Sized
from lading.errors import ConfigError, ExactnessError
from lading.records import Conversation, Cut, Dropped, Encoded, Length, SampleKey
from lading.samples.layouts import source_layouts
from lading.samples.skip import SkipPolicy
from lading.sources import Corpus, open_corpus


@dataclass(frozen=True, kw_only=True, slots=True)
class Samples:
    """A corpus seen through one processor."""

    corpus: Corpus
    encoder: Encoder
    policy: SkipPolicy = field(default_factory=SkipPolicy)
    cuts: Mapping[int, Cut] = field(default_factory=dict)
    """Samples of which only a part is used, because they are too long (`samples.truncation`)."""
    layouts: tuple[Layout, ...] = ()
    """How the rows of each source are read; found out here, once, and carried along to workers."""

    def __post_init__(self) -> None:
        if not self.layouts:
            object.__setattr__(self, "layouts", source_layouts(self.corpus))

    def __len__(self) -> int:
        return len(self.corpus)

    @property
    def facts(self) -> ProcessorFacts:
        """What is known of the processor."""
        return self.encoder.facts

    def conversation(self, index: int) -> Conversation:
        """What sample `index` says, up to its cut if it has one."""
        return self.read(self.corpus.key(index))

    def read(self, key: SampleKey) -> Conversation:
        """The same by the sample's name, where that is known already."""
        whole = read_conversation(self.corpus.named(key), self.layouts[self.corpus.locate(key.index)[0]])
        return shorten(whole, self.cuts[key.index]) if key.index in self.cuts else whole

    def tokenised(self, indices: Sequence[int]) -> list[TokenisedSample | Dropped]:
        """Tokens and labels of many samples, without pixels; what cannot be used says why."""
        return self.policy.attempt_each(self._keys(indices), self._sized, self.encoder.tokenise)

    def measure(self, indices: Sequence[int]) -> list[Length | Dropped]:
        """What many samples cost."""
        return self.policy.attempt_each(self._keys(indices), self._sized, self.encoder.measure)

    def encode(self, index: int, counted: int | None = None) -> Encoded | Dropped:
        """Sample `index` as tensors, pixels included. A length other than the counted one is an error of ours."""
        return self.encode_all([index], None if counted is None else [counted])[0]

    def encode_all(self, indices: Sequence[int], counted: Sequence[int] | None = None) -> list[Encoded | Dropped]:
        """The same of several samples. All are tokenised before the first pixel is decoded: pixels drive everything
        else out of the caches, and a sample that is tokenised right behind a picture takes three times as long.
        """
        tokenised = self.tokenised(indices)
        if counted is not None:
            for sample, length in zip(tokenised, counted, strict=True):
                _check_length(sample, length)
        return [
            sample
            if isinstance(sample, Dropped)
            else self.policy.attempt(sample.conversation.key, partial(self.encoder.with_media, sample))
            for sample in tokenised
        ]

    def in_bytes(self) -> Samples:
        """The same samples with pixels in bytes, where they can be: they are joined before they are scaled."""
        return replace(self, encoder=self.encoder.in_bytes())

    def _keys(self, indices: Sequence[int]) -> list[SampleKey]:
        return [self.corpus.key(index) for index in indices]

    def _sized(self, key: SampleKey) -> Sized:
        return self.encoder.sized(self.read(key))


def _check_length(tokenised: TokenisedSample | Dropped, counted: int) -> None:
    if isinstance(tokenised, Dropped) or len(tokenised.ids) == counted:
        return
    raise ExactnessError(
        found=f"{len(tokenised.ids)} tokens of {tokenised.conversation.key}",
        wanted=f"{counted}, as counted",
        consequence="its media changed since it was counted, or the count is wrong: see `lading count --again`, "
        "and try tokenizer='exact' (`--tokenizer exact`)",
    )


def opened(
    corpus: Any,
    cache: Cache,
    format_name: str | None,
    media_dir: str | Path | None,
    media_roots: Sequence[str | Path] | None,
) -> Corpus:
    """The corpus behind a path or a data set; one that is open is taken as it is."""
    if not isinstance(corpus, Corpus):
        return open_corpus(corpus, cache=cache, format=format_name, media_dir=media_dir, media_roots=media_roots)
    if format_name is not None or media_dir is not None or media_roots is not None:
        raise ConfigError(
            found="format, media_dir or media_roots for a corpus that is open",
            wanted="open_corpus(…, format=…, media_dir=…, media_roots=…)",
            where="Loader",
        )
    return corpus
