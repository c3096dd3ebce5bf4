"""Labels for ids that were tokenised elsewhere.

Three ways are tried, in order of trust: lining the ids up with our own
tokens of the same conversation (exact; quoted markers move nothing), the turn markers of the family, and, as a last
resort that says so, searching for the answer's text. Where the markers in the ids can be no others than the template's,
they are as good as lining up, and come first: nothing has to be tokenised.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lading.encode.expand import are_pads, labels_from_spans
from lading.encode.processor_facts import ProcessorFacts
from lading.errors import ConfigError
from lading.fields import IGNORE_INDEX
from lading.records import Conversation
from lading.vlm.batches import facts_of, talks_of
from lading.vlm.search import find_pattern, line_up, marker_spans, text_spans

logger = logging.getLogger(__name__)

Ids = NDArray[np.int64]
Span = tuple[int, int]

CHATML_PROCESSORS = frozenset(
    {
        "InternVLProcessor",
        "LlavaOnevisionProcessor",
        "Qwen2VLProcessor",
        "Qwen2_5_VLProcessor",
        "Qwen3OmniMoeProcessor",
        "Qwen3VLProcessor",
        "Step3p7Processor",
    }
)
"""Processors whose turns read `<|im_start|>role … <|im_end|>`."""


def find_pattern_indices(
    template: Any, pattern: Any, search_start_index: int = 0, allow_first_token_mismatch: bool = False
) -> tuple[int, int]:
    """(start, stop) of the first place where `pattern` stands in `template`; (-1, -1) where it does not.

    >>> find_pattern_indices([1, 2, 3, 4], [3, 4])
    (2, 4)
    >>> find_pattern_indices([1, 2, 3, 4], [9, 4], allow_first_token_mismatch=True)
    (2, 4)
    """
    ids, wanted = np.asarray(template, dtype=np.int64), np.asarray(pattern, dtype=np.int64)
    found = find_pattern(ids, wanted.tolist(), search_start_index)
    if not len(found) and allow_first_token_mismatch and len(wanted) > 1:
        # The first token of an answer may have merged with what stands before it.
        found = find_pattern(ids, wanted[1:].tolist(), search_start_index + 1) - 1
    return (int(found[0]), int(found[0]) + len(wanted)) if len(found) else (-1, -1)


def assistant_text(message: Mapping[str, Any]) -> str:
    """All the text of a message, part by part.

    >>> assistant_text({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]})
    'ab'
    """
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, (list, tuple)) else []
    texts = [part for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    return "".join(str(part.get("text", "")) for part in texts)


def decode_token(tokenizer: Any, token_id: int) -> str:
    """One token as text, whether the tokenizer wants a number or a list of them."""
    try:
        return str(tokenizer.decode(token_id))
    except TypeError:
        return str(tokenizer.decode([token_id]))


@lru_cache(maxsize=16)
def _marker_ids(tokenizer: Any, text: str) -> tuple[int, ...]:
    """A marker's ids, derived once for a tokenizer."""
    return tuple(tokenizer.encode(text, add_special_tokens=False))


@lru_cache(maxsize=16)
def _added_tokens(tokenizer: Any) -> dict[int, str]:
    """Tokens that stand for one text alone, which no merging makes or hides, by id."""
    return {number: text for text, number in tokenizer.get_added_vocab().items()}


def assistant_marker(tokenizer: Any) -> list[int] | None:
    """The ids of `<|im_start|>assistant` and a newline; `None` for a tokenizer without that convention."""
    start = tokenizer.convert_tokens_to_ids("<|im_start|>")
    if start is None or start == tokenizer.unk_token_id or stop_token(tokenizer) is None:
        return None
    return list(_marker_ids(tokenizer, "<|im_start|>assistant\n"))


def stop_token(tokenizer: Any) -> int | None:
    """The id of `<|im_end|>`, or `None`."""
    stop = tokenizer.convert_tokens_to_ids("<|im_end|>")
    return None if stop is None or stop == tokenizer.unk_token_id else int(stop)


def labels_by_text(input_ids_batch: torch.Tensor, conversations: Sequence[Any], processor: Any) -> torch.Tensor:
    """Labels by searching for the text of every answer: the last resort, for ids of unknown making.

    An answer is looked for behind the one before it, with and without a space in front, and labelled with the token
    that ends its turn, where there is one. What is not found stays unlabelled and is logged.
    """
    tokenizer = processor.tokenizer
    stops = {tokenizer.eos_token_id, stop_token(tokenizer)} - {None}
    rows = []
    for row, conversation in enumerate(_checked(input_ids_batch, conversations)):
        ids = input_ids_batch[row].numpy()
        said = [(turn.get("role"), assistant_text(turn)) for turn in conversation]
        spoken = [(role, text) for role, text in said if text.strip()]
        # Every turn is looked for, so that an answer is not found in the question before it.
        found = text_spans(ids, [_ways(tokenizer, text) for _, text in spoken])
        spans = [span for (role, _), span in zip(spoken, found, strict=True) if role == "assistant"]
        if None in spans:
            logger.warning("row %d: %d of %d answers not found in the ids", row, spans.count(None), len(spans))
        rows.append(labels_from_spans(ids, [_with_stop(ids, span, stops) for span in spans if span is not None]))
    return torch.from_numpy(np.stack(rows))


def _ways(tokenizer: Any, text: str) -> list[Sequence[int]]:
    """How a text may be tokenised in the middle of others: as it is, stripped, and with a space in front."""
    forms = dict.fromkeys((text, text.strip(), f" {text.strip()}"))
    return [tokenizer.encode(form, add_special_tokens=False) for form in forms]


def _with_stop(ids: Ids, span: Span, stops: Iterable[int | None]) -> Span:
    start, stop = span
    return (start, stop + 1) if stop < len(ids) and int(ids[stop]) in set(stops) else span


def labels_by_turns(input_ids_batch: torch.Tensor, conversations: Sequence[Any], processor: Any) -> torch.Tensor:
    """Labels by the turns of the chat template: what the assistant says, its closing marker included.

    Padding may stand on either side; media may be expanded or not, and need not be at hand; the end may be cut off.
    Where nobody answers, nothing is labelled. For a processor whose turns
    cannot be read off, `labels_by_text` has to do, and a warning says so.
    """
    checked = _checked(input_ids_batch, conversations)
    try:
        facts = facts_of(processor)
    except ConfigError as error:
        logger.warning("labels by searching for the answers' text: %s", error)
        return labels_by_text(input_ids_batch, conversations, processor)
    rows = [_template_labels(input_ids_batch[row].numpy(), talk, facts) for row, talk in enumerate(talks_of(checked))]
    return torch.from_numpy(np.stack(rows))


def _template_labels(ids: Ids, conversation: Conversation, facts: ProcessorFacts) -> Ids:
    if all(message.role != "assistant" for message in conversation.messages):
        return labels_from_spans(ids, [])
    text, said = facts.tokeniser.rendered(conversation)
    spans = _matching_spans(ids, text, said, facts)
    if spans is None:
        spans = _lined_up_spans(ids, text, said, facts)
    if spans is None:
        spans = _marked_spans(ids, facts)
    labels = labels_from_spans(ids, spans)
    labels[are_pads(labels, facts.tokeniser.pads)] = IGNORE_INDEX
    return labels


def _matching_spans(ids: Ids, text: str, said: Sequence[Span], facts: ProcessorFacts) -> list[Span] | None:
    """Spans by the markers in `ids`, where these must be the template's own; then nothing has to be tokenised again.

    They are, where the text has no marker but the template's around each answer, the markers begin with a token that
    nothing else can be, and `ids` has as many of all of them as the text.
    """
    tokenizer, turns = facts.processor.tokenizer, facts.family.turns
    opening, closing = turns.open("assistant"), turns.closing
    plain = text.count(opening) == len(said) and all(
        text.endswith(opening, 0, start) and text.find(closing, start, stop) == stop - len(closing)
        for start, stop in said
    )
    marks = _marker_ids(tokenizer, opening), _marker_ids(tokenizer, closing)
    names = [_added_tokens(tokenizer).get(mark[0]) for mark in marks]
    if not plain or any(name is None or name not in text for name in names):
        return None
    if any(np.count_nonzero(ids == mark[0]) != text.count(str(name)) for mark, name in zip(marks, names, strict=True)):
        return None
    spans = marker_spans(ids, *marks)
    return _without_unsaid(ids, spans, facts) if len(spans) == len(said) else None


def _lined_up_spans(ids: Ids, text: str, said: Sequence[Span], facts: ProcessorFacts) -> list[Span] | None:
    """Spans of our own tokens, moved to where those tokens stand in `ids`."""
    (own,) = facts.tokeniser.encode_texts([text])
    places = line_up(ids, own.ids, facts.tokeniser.pads)
    if places is None:
        return None
    spans = (own.token_span(start, stop) for start, stop in said)
    return [(int(places[start]), int(places[stop])) for start, stop in spans]


def _marked_spans(ids: Ids, facts: ProcessorFacts) -> list[Span]:
    tokenizer, turns = facts.processor.tokenizer, facts.family.turns
    opening = _marker_ids(tokenizer, turns.open("assistant"))
    return _without_unsaid(ids, marker_spans(ids, opening, _marker_ids(tokenizer, turns.closing)), facts)


def _without_unsaid(ids: Ids, spans: list[Span], facts: ProcessorFacts) -> list[Span]:
    """Spans between markers, without what is put in front of every answer: it is seen and not trained on."""
    for unsaid in (_marker_ids(facts.processor.tokenizer, text) for text in facts.family.turns.unsaid):
        unsaid_places = {int(place) for place in find_pattern(ids, unsaid)}
        spans = [(start + len(unsaid), stop) if start in unsaid_places else (start, stop) for start, stop in spans]
    return spans


def _checked(input_ids_batch: torch.Tensor, conversations: Sequence[Any]) -> list[Any]:
    if input_ids_batch.ndim != 2 or not conversations or len(input_ids_batch) != len(conversations):
        raise ConfigError(
            found=f"ids {list(input_ids_batch.shape)} for {len(conversations)} conversations",
            wanted="[B, T] with a row for each conversation, and at least one",
            where="labels",
        )
    return list(conversations)
