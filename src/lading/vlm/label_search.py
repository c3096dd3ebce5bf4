"""Labels for ids that were tokenised elsewhere.

Three ways are tried, in order of trust: lining the ids up with our own tokens of the same conversation (exact; quoted
markers move nothing), the turn markers of the family, and, as a last resort that says so, searching for the answer's
text. Where the markers in the ids can be no others than the template's, they are as good as lining up, and come first:
nothing has to be tokenised. Each way is a look-up in arrays; none walks over tokens in Python.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
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
from lading.vlm.batches import encoder_of, read_conversations

logger = logging.getLogger(__name__)

Ids = NDArray[np.int64]
Span = tuple[int, int]

NARROWING = 16
"""Tokens of a pattern that are compared for all places at once; the few places that are left are compared whole."""

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


def build_labels(input_ids_batch: torch.Tensor, conversations: Sequence[Any], processor: Any) -> torch.Tensor:
    """Labels by searching for the text of every answer: the last resort, for ids of unknown making.

    An answer is looked for behind the one before it, with and without a space in front, and labelled with the token
    that ends its turn, where there is one. What is not found stays unlabelled and is logged.
    """
    tokenizer = processor.tokenizer
    stops = {tokenizer.eos_token_id, stop_token(tokenizer)} - {None}
    rows = []
    for row, conversation in enumerate(_checked(input_ids_batch, conversations)):
        ids = input_ids_batch[row].numpy()
        turns = [(turn.get("role"), assistant_text(turn)) for turn in conversation]
        turns = [(role, text) for role, text in turns if text.strip()]
        # Every turn is looked for, so that an answer is not found in the question before it.
        found = text_spans(ids, [_ways(tokenizer, text) for _, text in turns])
        spans = [span for (role, _), span in zip(turns, found, strict=True) if role == "assistant"]
        if None in spans:
            logger.warning("row %d: %d of %d answers not found in the ids", row, spans.count(None), len(spans))
        whole = [
            (start, stop + (stop < len(ids) and int(ids[stop]) in stops))
            for start, stop in (span for span in spans if span is not None)
        ]
        rows.append(labels_from_spans(ids, whole))
    return torch.from_numpy(np.stack(rows))


def _ways(tokenizer: Any, text: str) -> list[Sequence[int]]:
    """How a text may be tokenised in the middle of others: as it is, stripped, and with a space in front."""
    forms = dict.fromkeys((text, text.strip(), f" {text.strip()}"))
    return [tokenizer.encode(form, add_special_tokens=False) for form in forms]


def build_labels_from_template(
    input_ids_batch: torch.Tensor, conversations: Sequence[Any], processor: Any
) -> torch.Tensor:
    """Labels by the turns of the chat template: what the assistant says, its closing marker included.

    Padding may stand on either side; media may be expanded or not, and need not be at hand; the end may be cut off.
    Where nobody answers, nothing is labelled. For a processor whose turns cannot be read off, `build_labels` has to
    do, and a warning says so.
    """
    checked = _checked(input_ids_batch, conversations)
    try:
        facts = encoder_of(processor).facts
    except ConfigError as error:
        logger.warning("labels by searching for the answers' text: %s", error)
        return build_labels(input_ids_batch, conversations, processor)
    rows = [
        _template_labels(input_ids_batch[row].numpy(), conversation, facts)
        for row, conversation in enumerate(read_conversations(checked))
    ]
    return torch.from_numpy(np.stack(rows))


def _template_labels(ids: Ids, conversation: Conversation, facts: ProcessorFacts) -> Ids:
    if all(message.role != "assistant" for message in conversation.messages):
        return labels_from_spans(ids, [])
    text, answers = facts.tokeniser.rendered(conversation)
    spans = _matching_spans(ids, text, answers, facts)
    if spans is None:
        spans = _lined_up_spans(ids, text, answers, facts)
    if spans is None:
        spans = _marked_spans(ids, facts)
    said = [message.weight for message in conversation.messages if message.role == "assistant"]
    if len(said) == len(spans):
        spans = [span for span, weight in zip(spans, said, strict=True) if weight]
    elif 0 in said:
        raise ConfigError(
            found=f"{len(said)} answers, some of weight 0, and {len(spans)} turns in the ids",
            wanted="ids in which every answer is found",
            consequence="an answer that is not to be trained on might be",
            where="build_labels_from_template",
        )
    labels = labels_from_spans(ids, spans)
    labels[are_pads(labels, facts.tokeniser.pads)] = IGNORE_INDEX
    return labels


def _matching_spans(ids: Ids, text: str, answers: Sequence[Span], facts: ProcessorFacts) -> list[Span] | None:
    """Spans by the markers in `ids`, where these must be the template's own; then nothing has to be tokenised again.

    They are, where the text has no marker but the template's around each answer, the markers begin with a token that
    nothing else can be, and `ids` has as many of all of them as the text.
    """
    tokenizer, turns = facts.processor.tokenizer, facts.family.turns
    opening, closing = turns.open("assistant"), turns.closing
    plain = text.count(opening) == len(answers) and all(
        text.endswith(opening, 0, start) and text.find(closing, start, stop) == stop - len(closing)
        for start, stop in answers
    )
    if not plain:
        return None
    for first, *_ in (_marker_ids(tokenizer, opening), _marker_ids(tokenizer, closing)):
        name = _added_tokens(tokenizer).get(first)
        if name is None or name not in text or np.count_nonzero(ids == first) != text.count(name):
            return None
    spans = _marked_spans(ids, facts)
    return spans if len(spans) == len(answers) else None


def _lined_up_spans(ids: Ids, text: str, answers: Sequence[Span], facts: ProcessorFacts) -> list[Span] | None:
    """Spans of our own tokens, moved to where those tokens stand in `ids`."""
    (own,) = facts.tokeniser.encode_texts([text])
    places = line_up(ids, own.ids, facts.tokeniser.pads)
    if places is None:
        return None
    spans = (own.token_span(start, stop) for start, stop in answers)
    return [(int(places[start]), int(places[stop])) for start, stop in spans]


def _marked_spans(ids: Ids, facts: ProcessorFacts) -> list[Span]:
    """Spans between markers, without what is put in front of every answer: it is seen and not trained on."""
    tokenizer, turns = facts.processor.tokenizer, facts.family.turns
    spans = marker_spans(ids, _marker_ids(tokenizer, turns.open("assistant")), _marker_ids(tokenizer, turns.closing))
    for unsaid in (_marker_ids(tokenizer, text) for text in turns.unsaid):
        unsaid_places = set(find_pattern(ids, unsaid).tolist())
        spans = [(start + len(unsaid) * (start in unsaid_places), stop) for start, stop in spans]
    return spans


def _checked(input_ids_batch: torch.Tensor, conversations: Sequence[Any]) -> list[Any]:
    if input_ids_batch.ndim != 2 or not conversations or len(input_ids_batch) != len(conversations):
        raise ConfigError(
            found=f"ids {list(input_ids_batch.shape)} for {len(conversations)} conversations",
            wanted="[B, T] with a row for each conversation, and at least one",
            where="labels",
        )
    return list(conversations)


def find_pattern(ids: Ids, pattern: Sequence[int], start: int = 0) -> Ids:
    """Where `pattern` begins in `ids`, from `start` on.

    >>> find_pattern(np.array([1, 2, 3, 1, 2]), [1, 2]).tolist()
    [0, 3]
    """
    wanted = np.asarray(pattern, dtype=np.int64)
    places = len(ids) - len(wanted) + 1
    if not len(wanted) or places <= start:
        return np.zeros(0, dtype=np.int64)
    found = np.flatnonzero(ids[start:places] == wanted[0]) + start
    for offset, token in enumerate(wanted[1:NARROWING].tolist(), start=1):
        found = found[ids[found + offset] == token]
    if len(wanted) > NARROWING:
        whole = [np.array_equal(ids[place : place + len(wanted)], wanted) for place in found.tolist()]
        found = found[np.array(whole, dtype=np.bool_)]
    return found


def line_up(ids: Ids, own: Ids, pads: Sequence[int]) -> Ids | None:
    """For each of our own tokens, where it begins in `ids`; `None` where the two do not say the same.

    In `ids` a medium's pad may stand many times where ours stands once, padding may surround the text on either side,
    and the end may be cut off (places behind it are the length of `ids`).

    >>> line_up(np.array([0, 0, 5, 9, 9, 9, 6]), np.array([5, 9, 6]), pads=[9]).tolist()
    [2, 3, 6, 7]
    """
    repeats = are_pads(ids, pads) & (ids == np.concatenate([[-1], ids[:-1]]))
    begins = np.flatnonzero(~repeats)
    folded = ids[begins]
    found = find_pattern(folded, own.tolist())
    if len(found):
        first = int(found[-1])
        return np.append(begins, len(ids))[first : first + len(own) + 1]
    for first in find_pattern(folded, own[:1].tolist()).tolist():
        rest = folded[first:]
        if 1 < len(rest) < len(own) and np.array_equal(rest, own[: len(rest)]):  # the ids end with a beginning of ours
            return np.append(begins[first:], np.full(len(own) + 1 - len(rest), len(ids), dtype=np.int64))
    return None


def marker_spans(ids: Ids, opening: Sequence[int], closing: Sequence[int]) -> list[Span]:
    """What stands between each opening and the next closing, the closing included.

    >>> marker_spans(np.array([7, 8, 1, 2, 9, 7, 8, 3]), opening=[7, 8], closing=[9])
    [(2, 5), (7, 8)]
    """
    starts = find_pattern(ids, opening) + len(opening)
    stops = find_pattern(ids, closing) + len(closing)
    spans: list[Span] = []
    for start in starts.tolist():
        after = stops[np.searchsorted(stops, start, side="right") :]
        stop = int(after[0]) if len(after) else len(ids)
        if not spans or start >= spans[-1][1]:
            spans.append((start, stop))
    return spans


def text_spans(ids: Ids, answers: Sequence[Sequence[Sequence[int]]]) -> list[Span | None]:
    """Where each answer stands, each given in the ways it may be tokenised, looked for behind the one before."""
    spans: list[Span | None] = []
    cursor = 0
    for ways in answers:
        found = [(int(hits[0]), len(way)) for way in ways if len(hits := find_pattern(ids, way, cursor))]
        if not found:
            spans.append(None)
            continue
        start, length = min(found)
        spans.append((start, start + length))
        cursor = start + length
    return spans
