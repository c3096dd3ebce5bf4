"""A page and its text, for an encoder and a decoder (Nemotron-Parse): there is no chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from lading.errors import ConfigError, Reason, SkipSample
from lading.fields import IGNORE_INDEX, Field
from lading.media import image
from lading.records import Conversation, MediaPart, TextPart
from lading.tensors import pad, stack
from lading.vlm.batches import conversations_of
from lading.vlm.padded_batches import shift_batch

TASK_PROMPT = "</s><s><predict_bbox><predict_classes><output_markdown>"


def collate_pages(
    examples: Sequence[Mapping[str, Any]], processor: Any, task_prompt: str = TASK_PROMPT
) -> dict[str, Any]:
    """One page an example: `pixel_values`, and the prompt and the answer as decoder inputs with the prompt unlabelled.

    `decoder_input_ids` is the text without its last token and `labels` the text without its first, so nothing needs to
    be shifted any more; `input_ids` and `attention_mask` are the same text for whoever wants them.
    """
    talks = conversations_of(examples)
    tokenizer = processor.tokenizer
    if tokenizer.pad_token_id is None:
        raise ConfigError(found="no pad token on the tokenizer", wanted="one; set tokenizer.pad_token")
    prompt = tokenizer.encode(task_prompt, add_special_tokens=False)
    end = [tokenizer.eos_token_id] if tokenizer.eos_token_id is not None else []
    last = tokenizer.eos_token or ""
    answers = [tokenizer.encode(_answer(talk).removesuffix(last), add_special_tokens=False) for talk in talks]
    ids = _rows([[*prompt, *answer, *end] for answer in answers], tokenizer.pad_token_id)
    labels = _rows([[*[IGNORE_INDEX] * len(prompt), *answer, *end] for answer in answers], IGNORE_INDEX)
    mask = _rows([[1] * (len(prompt) + len(answer) + len(end)) for answer in answers], 0)
    pages = processor.image_processor([image.decode(_page(talk)) for talk in talks], return_tensors="pt")
    shifted = shift_batch({"input_ids": ids, "attention_mask": mask, "labels": labels})
    return {
        "pixel_values": pages["pixel_values"],
        **shifted,
        "decoder_input_ids": shifted["input_ids"],
        "decoder_attention_mask": shifted["attention_mask"],
    }


def _page(talk: Conversation) -> MediaPart:
    pages = [part for part in talk.media if part.kind == "image"]
    if len(pages) != 1 or len(talk.media) != 1:
        raise SkipSample(
            Reason.BAD_ROW,
            found=f"{len(pages)} pictures and {len(talk.media) - len(pages)} other media",
            wanted="one page",
            where=talk.key.where,
        )
    return pages[0]


def _answer(talk: Conversation) -> str:
    said = [message for message in talk.messages if message.role == "assistant"]
    if len(said) != 1:
        raise SkipSample(Reason.BAD_ROW, found=f"{len(said)} answers", wanted="one", where=talk.key.where)
    return "".join(part.text for part in said[0].parts if isinstance(part, TextPart))


def _rows(rows: list[list[int]], value: int) -> torch.Tensor:
    longest = max(len(row) for row in rows)
    return stack([pad(torch.tensor(row), longest, Field(axis="token"), value) for row in rows])
