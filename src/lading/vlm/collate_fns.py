"""`nemo_automodel.components.datasets.vlm.collate_fns`, under its names.

A collate function takes examples (`{"conversation": …}`) and gives a dictionary: `input_ids`, `attention_mask` and
`labels` [B, T], the media tensors of the family, and `n_images_per_sample` and its like, which say whose they are. As
the page says, labels are shifted here, once: they lose their first place and everything else its last, so a model that
shifts by itself must be given `shift_labels=batch["labels"]`.

All functions share one way (`vlm/batches.py`); what differs between families is declared in `families/`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from lading.errors import ConfigError
from lading.families import all_families, media_inputs
from lading.fields import Field
from lading.media import image
from lading.media.geometry import PatchGrid
from lading.media.video import HEARD
from lading.tensors import pad, stack
from lading.vlm.batches import (
    collate_examples,
    encoder_of,
    fitting,
    known_footprints,
    lengths_at_least,
    nemotron_parse_collate_fn,
)
from lading.vlm.batches import read_conversations as _talks
from lading.vlm.datasets import RobustDatasetWrapper
from lading.vlm.examples import to_example
from lading.vlm.label_search import CHATML_PROCESSORS as _IMSTART_TEMPLATE_PROCESSORS
from lading.vlm.label_search import assistant_marker as _get_assistant_marker
from lading.vlm.label_search import assistant_text as _extract_assistant_text
from lading.vlm.label_search import build_labels, build_labels_from_template, find_pattern
from lading.vlm.label_search import decode_token as _decode_single_token
from lading.vlm.label_search import find_pattern_indices as _find_pattern_indices
from lading.vlm.label_search import stop_token as _get_stop_token_id
from lading.vlm.padded_batches import REQUIRED, SampleInputs, neat_packed_vlm_collater, pad_samples, shift_batch
from lading.vlm.replacement import Indexed, Replacing

__all__ = [
    "COLLATE_FNS",
    "_GEMMA4_MODEL_TURN",
    "_GEMMA4_THINKING_PREFIX",
    "_IMSTART_TEMPLATE_PROCESSORS",
    "_count_media_per_sample",
    "_decode_single_token",
    "_drop_overlong_samples",
    "_ensure_rgb",
    "_estimate_media_tokens",
    "_expand_image_tokens",
    "_extract_assistant_text",
    "_extract_image_config",
    "_extract_media_from_conversations",
    "_find_pattern_indices",
    "_get_assistant_marker",
    "_get_stop_token_id",
    "_inject_thinking_prefix_tokens",
    "build_labels",
    "build_labels_from_template",
    "default_collate_fn",
    "gemma4_prefix_collate_fn",
    "kimi_k25_vl_collate_fn",
    "kimi_vl_collate_fn",
    "make_robust_collate",
    "neat_packed_vlm_collater",
    "nemotron_parse_collate_fn",
    "pad_collate_fn",
    "phi4_mm_collate_fn",
    "qwen2_5_collate_fn",
    "qwen3_omni_collate_fn",
]

logger = logging.getLogger(__name__)

Examples = Sequence[Mapping[str, Any]]
Batch = dict[str, Any]

_GEMMA4_MODEL_TURN = "<|turn>model\n"
_GEMMA4_THINKING_PREFIX = "<|channel>thought\n<channel|>"
"""Gemma 4's instruction-tuned models always open a channel for thinking before they answer; this is an empty one."""


def make_robust_collate(
    dataset: Indexed, collate_fn: Callable[[list[Any]], Any], max_retries: int = 10
) -> Callable[[Sequence[Any]], Any]:
    """Wrap `collate_fn` so that, when it fails, the whole batch is drawn again from `dataset`, by a rule.

    A wrapper knows which samples a batch is made of, and who stands in for them depends on these. Samples of any other
    data set have no numbers here: batches are counted, by each worker for itself.
    """
    wrapper = dataset if isinstance(dataset, Replacing) else RobustDatasetWrapper(dataset, max_retries=max_retries)
    return wrapper.robust_collate(collate_fn, max_retries)


def _extract_media_from_conversations(conversations: Sequence[Any]) -> tuple[list[Any] | None, list[Any] | None]:
    """(images, videos) of all conversations in reading order, as they were given; `None` where there are none."""
    media = [part for read in _talks(conversations) for part in read.media if part.reference is not None]
    images = [part.reference for part in media if part.kind == "image"]
    videos = [part.reference for part in media if part.kind == "video"]
    return images or None, videos or None


def _count_media_per_sample(conversations: Sequence[Any]) -> tuple[list[int], list[int]]:
    """(images, videos) in each conversation, at hand or not.

    >>> _count_media_per_sample([[{"role": "user", "content": [{"type": "image", "image": "a.jpg"}, {"type": "image"}]},
    ...                           {"role": "assistant", "content": "Two cats."}]])
    ([2], [0])
    """
    kinds = [[part.kind for part in read.media] for read in _talks(conversations)]
    return [own.count("image") for own in kinds], [own.count("video") for own in kinds]


def _ensure_rgb(conversations: Sequence[Any]) -> Sequence[Any]:
    """The conversations with every PIL image in RGB: grey, palette, alpha, CMYK and 16-bit ones converted.

    A picture is not turned: one opened from a path is turned by its EXIF orientation when it is decoded, one handed
    over as a PIL image is taken as it is. The given lists are changed in place, and returned.
    """
    from PIL import Image

    for conversation in conversations:
        for message in conversation:
            content = message.get("content")
            for part in content if isinstance(content, list) else ():
                picture = part.get("image") if isinstance(part, dict) else None
                if isinstance(picture, Image.Image):
                    part["image"] = image.to_rgb(picture)
    return conversations


def _extract_image_config(processor: Any) -> dict[str, int]:
    """The numbers of a processor's patch grid; empty where its pictures are not cut into one."""
    grid = encoder_of(processor).facts.geometries.get("image")
    if not isinstance(grid, PatchGrid):
        return {}
    return {
        "factor": grid.patch * grid.merge,
        "patch_size": grid.patch,
        "merge_size": grid.merge,
        "min_pixels": grid.min_pixels,
        "max_pixels": grid.max_pixels,
    }


def _estimate_media_tokens(conversation: Any, processor: Any) -> int:
    """Tokens that the media of a conversation add to their marks: exact, from headers alone. A medium that cannot be
    measured adds nothing.
    """
    encoder, tokenizer = encoder_of(processor), processor.tokenizer
    tokens = 0
    for footprint in known_footprints(encoder, _talks([conversation])[0]):
        if footprint is not None:
            written = encoder.facts.tokeniser.media[footprint.kind].text(footprint)
            others = len(tokenizer.encode(written, add_special_tokens=False)) - len(footprint.runs)
            tokens += sum(footprint.runs) + others - 1
    return tokens


def _drop_overlong_samples(
    conversations: Sequence[Any], processor: Any, max_length: int
) -> tuple[list[Any], list[int]]:
    """(conversations of at most `max_length` tokens, their places). Where none is left, a `ValueError`. A medium that
    cannot be measured adds nothing to its mark, as in `_estimate_media_tokens`.
    """
    kept = fitting(lengths_at_least(_talks(conversations), encoder_of(processor)), max_length)
    return [conversations[place] for place in kept], kept


def _expand_image_tokens(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    grid_thws: torch.Tensor,
    media_token_id: int,
    merge_kernel_size: tuple[int, int] = (2, 2),
) -> tuple[torch.Tensor, torch.Tensor]:
    """Each placeholder as often as its image has tokens, t·(h // kernel)·(w // kernel); several images are fine.

    >>> ids, mask = _expand_image_tokens(torch.tensor([1, 9, 2]), torch.ones(3), torch.tensor([[1, 4, 4]]), 9)
    >>> ids.tolist()
    [1, 9, 9, 9, 9, 2]
    """
    places = (input_ids == media_token_id).nonzero().flatten()
    if len(places) != len(grid_thws):
        raise ConfigError(
            found=f"{len(places)} placeholders for {len(grid_thws)} grids", wanted="one for each", where="expand"
        )
    repeats = torch.ones_like(input_ids)
    high, wide = merge_kernel_size
    repeats[places] = (grid_thws[:, 0] * (grid_thws[:, 1] // high) * (grid_thws[:, 2] // wide)).to(repeats)
    return input_ids.repeat_interleave(repeats), attention_mask.repeat_interleave(repeats)


def default_collate_fn(
    examples: Examples,
    processor: Any,
    max_length: int | None = None,
    _post_tokenize_hook: Callable[[Batch, Any], Batch] | None = None,
) -> Batch:
    """Any family. With `max_length`, longer examples are left out (by exact count) and rows have that length.

    `_post_tokenize_hook(batch, processor)` may change the padded batch; labels are then found in what it gives.
    """
    hook = None if _post_tokenize_hook is None else partial(_hooked, processor, _post_tokenize_hook)
    return collate_examples(examples, processor, max_length=max_length, hook=hook)


def _hooked(processor: Any, hook: Callable[[Batch, Any], Batch], batch: Batch, conversations: Sequence[Any]) -> Batch:
    batch.pop("labels")
    changed = hook(batch, processor)
    turns = [to_example(conversation)["conversation"] for conversation in conversations]
    return {**changed, "labels": build_labels_from_template(changed["input_ids"], turns, processor)}


def qwen2_5_collate_fn(examples: Examples, processor: Any) -> Batch:
    """Qwen2.5-VL."""
    return collate_examples(examples, processor, family="qwen2_5_vl")


def qwen3_omni_collate_fn(examples: Examples, processor: Any, use_audio_in_video: bool = False) -> Batch:
    """Qwen3-Omni. With `use_audio_in_video` clips are heard too: their own sound stands between their frames."""
    if use_audio_in_video:
        examples = [{**example, "conversation": _with_sound(example.get("conversation"))} for example in examples]
    return collate_examples(examples, processor, family="qwen3_omni")


def _with_sound(conversation: Any) -> Any:
    """The conversation with every clip marked as one to be heard; what is none is left for the reader to refuse."""
    if not isinstance(conversation, (list, tuple)):
        return conversation
    turns = [dict(turn) for turn in conversation]
    for turn in turns:
        if isinstance(turn.get("content"), list):
            turn["content"] = [
                {**part, HEARD: True} if isinstance(part, Mapping) and part.get("type") == "video" else part
                for part in turn["content"]
            ]
    return turns


def kimi_vl_collate_fn(examples: Examples, processor: Any, max_length: int | None = None) -> Batch:
    """Kimi-VL, with rows of `max_length` where it is given."""
    return collate_examples(examples, processor, max_length=max_length)


def kimi_k25_vl_collate_fn(examples: Examples, processor: Any, max_length: int | None = None) -> Batch:
    """Kimi K2.5, every image's placeholder expanded before the model, so that pipeline stages see one length."""
    return collate_examples(examples, processor, family="kimi_k25", max_length=max_length)


def phi4_mm_collate_fn(examples: Examples, processor: Any) -> Batch:
    """Phi-4-multimodal; `input_mode` says what the batch holds: 0 text, 1 pictures, 2 sounds, 3 both."""
    batch = collate_examples(examples, processor, family="phi4_mm")
    mode = ("image_pixel_values" in batch) + 2 * ("audio_input_features" in batch)
    return {**batch, "input_mode": torch.tensor([mode])}


def gemma4_prefix_collate_fn(examples: Examples, processor: Any, max_length: int | None = None) -> Batch:
    """Gemma 4 with an empty thought in front of every answer, seen by the model and not trained on."""
    prefix = processor.tokenizer.encode(_GEMMA4_THINKING_PREFIX, add_special_tokens=False)
    return collate_examples(examples, processor, family="gemma4", max_length=max_length, prefix=prefix)


def pad_collate_fn(examples: Examples, processor: Any, max_length: int | None = None) -> Batch:
    """Samples that `PreTokenizedDatasetWrapper` tokenised: padded on the right, media joined, shifted by one."""
    facts = encoder_of(processor).facts
    missing = [name for name in REQUIRED for sample in examples if name not in sample]
    if missing:
        raise ConfigError(found=f"samples without {missing[0]}", wanted="pre-tokenised samples", where="pad_collate_fn")
    carried = [sample.document for sample in examples if isinstance(sample, SampleInputs)]
    batch = pad_samples(
        examples,
        fields=facts.family.table,
        pad_token=facts.pad_token,
        length=max_length,
        documents=carried if len(carried) == len(examples) else None,
    )
    return shift_batch(batch)


def _inject_thinking_prefix_tokens(batch: Batch, tokenizer: Any) -> Batch:
    """The batch with Gemma 4's empty thought behind every `<|turn>model` marker.

    What runs along with the ids [B, T] (masks, token types; any whole numbers [R, T] but those of media) grows with
    them: the mask by ones, other numbers by zeros. Rows with fewer turns are padded on the side the tokenizer pads on.
    """
    opening = tokenizer.encode(_GEMMA4_MODEL_TURN, add_special_tokens=False)
    prefix = torch.tensor(tokenizer.encode(_GEMMA4_THINKING_PREFIX, add_special_tokens=False))
    ids, left = batch["input_ids"], tokenizer.padding_side == "left"
    places = [find_pattern(row.numpy(), opening) + len(opening) for row in ids]
    width = ids.shape[1] + len(prefix) * max((len(own) for own in places), default=0)
    fillings = {"input_ids": prefix, "attention_mask": torch.ones_like(prefix)}
    changed, media = dict(batch), media_inputs()
    for name, value in batch.items():
        runs_along = isinstance(value, torch.Tensor) and value.ndim == 2 and value.shape[1] == ids.shape[1]
        if name in media or not runs_along or value.is_floating_point():
            continue
        filling = fillings.get(name, torch.zeros_like(prefix)).to(value)
        if len(value) == len(places):
            at_rows = places
        else:
            # They are those of the only text. Whose they are among several is not known: they are only made as long.
            at_rows = [places[0] if len(places) == 1 else places[0][:0]] * len(value)
        rows = [
            torch.from_numpy(np.insert(row.numpy(), np.repeat(at, len(filling)), np.tile(filling.numpy(), len(at))))
            for row, at in zip(value, at_rows, strict=True)
        ]
        pad_value = tokenizer.pad_token_id if name == "input_ids" else 0
        changed[name] = stack([pad(row, width, Field(axis="token"), pad_value, left=left) for row in rows])
    return changed


class _CollateFunctions(dict[str, Callable[..., Batch]]):
    """Collate functions by processor class name; one that is not listed gets the default, with a warning."""

    def __missing__(self, name: str) -> Callable[..., Batch]:
        logger.warning("no collate function for %r: the default is taken, which reads the processor's own class", name)
        return default_collate_fn


_OF_FAMILIES: dict[str, Callable[..., Batch]] = {
    "qwen2_5_vl": qwen2_5_collate_fn,
    "qwen3_omni": qwen3_omni_collate_fn,
    "kimi_k25": kimi_k25_vl_collate_fn,
    "phi4_mm": phi4_mm_collate_fn,
    "gemma4": gemma4_prefix_collate_fn,
}

COLLATE_FNS: dict[str, Callable[..., Batch]] = _CollateFunctions(
    {
        **{
            processor: _OF_FAMILIES.get(family.name, default_collate_fn)
            for family in all_families()
            for processor in family.processors
        },
        "KimiVLProcessor": kimi_vl_collate_fn,
        "NemotronParseProcessor": nemotron_parse_collate_fn,
        "default": default_collate_fn,
    }
)
