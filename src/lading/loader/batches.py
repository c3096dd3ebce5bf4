"""Examples → one padded batch, as a collate function gives it: conversation, tokenise, media and collate, wired."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from lading.collate.pages import pad_samples, shift_batch
from lading.conversation.export import from_example
from lading.errors import ConfigError, Reason, SkipSample
from lading.loader.border import Border, read_processor
from lading.loader.encoder import as_inputs
from lading.loader.samples import Samples
from lading.records import Conversation, SampleKey
from lading.sources import Corpus

logger = logging.getLogger(__name__)


@lru_cache(maxsize=8)
def border_of(processor: Any, family: str | None = None) -> Border:
    """A processor's border, read once: markers, pads and geometries are not derived again for every batch."""
    return read_processor(processor, family)


def conversations_of(examples: Sequence[Mapping[str, Any]]) -> list[Conversation]:
    """The conversations of a batch of examples; a bad one is raised with its place in the batch."""
    if not examples:
        raise ConfigError(found="no examples", wanted="at least one", where="collate")
    return [
        from_example(example, SampleKey(index=place, source="batch", where=f"example {place} of the batch"))
        for place, example in enumerate(examples)
    ]


def collate_examples(
    examples: Sequence[Mapping[str, Any]],
    processor: Any,
    *,
    family: str | None = None,
    max_length: int | None = None,
    hook: Callable[[dict[str, Any], Sequence[Conversation]], dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """One row an example: ids, mask, labels and media, shifted by one as the pages say.

    With `max_length`, examples with more tokens are left out (all of them: an error), and rows have that length.
    `hook` may change the padded batch before it is shifted; it must then see to the labels.
    """
    border = border_of(processor, family)
    conversations = conversations_of(examples)
    if max_length is not None:
        lengths = exact_lengths(conversations, border)
        conversations = [conversations[place] for place in fitting(lengths, max_length)]
    samples = Samples(corpus=Corpus.of(()), border=border)
    inputs = [as_inputs(samples.encode_conversation(conversation)) for conversation in conversations]
    batch = pad_samples(
        inputs,
        documents=[sample.document for sample in inputs],
        fields=border.family.table,
        pad_token=border.pad_token,
        length=max_length,
        left=processor.tokenizer.padding_side == "left",
    )
    if hook is not None:
        batch = hook(batch, conversations)
    return shift_batch(batch)


def exact_lengths(conversations: Sequence[Conversation], border: Border) -> list[int]:
    """How many tokens each conversation has, media included, from headers alone."""
    samples = Samples(corpus=Corpus.of(()), border=border)
    outlines = border.tokeniser.outline((talk, samples.footprints(talk)) for talk in conversations)
    for outline in outlines:
        if isinstance(outline, SkipSample):
            raise outline
    return [len(outline.ids) for outline in outlines if not isinstance(outline, SkipSample)]


class AllTooLong(SkipSample, ValueError):
    """Every sample of a batch has too many tokens; a robust collate function draws another batch."""


def fitting(lengths: Sequence[int], max_length: int) -> list[int]:
    """Which samples have at most `max_length` tokens. The others are logged; where none is left, that is an error."""
    kept = [place for place, length in enumerate(lengths) if length <= max_length]
    if not kept:
        raise AllTooLong(
            Reason.TOO_LONG,
            found=f"only samples of {', '.join(map(str, lengths))} tokens in the batch",
            wanted=f"one of at most {max_length} (max_length)",
            where="collate",
        )
    if len(kept) < len(lengths):
        logger.warning("left out %d of %d samples over %d tokens", len(lengths) - len(kept), len(lengths), max_length)
    return kept
