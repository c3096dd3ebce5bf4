"""Keys of a row, its messages and their parts: which are read, and what is said of those that nobody reads.

A key that says how to train (`HOW_TO_TRAIN`) and is not obeyed ends the run, by name, unless it is ignored on purpose
(`ignore_keys`). One of `HARMLESS` is listed; every other is reported, once for each source.

    {"id": 7, "weight": 0.1, "messages": [{"role": "assistant", "content": "Ada.", "mood": "glad"}]}
      id                harmless
      weight            how to train: row_weight=True obeys it
      messages[].mood   unread
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from lading.errors import ConfigError

TrainOn = Literal["all", "last"]
Reasoning = Literal["train", "given", "drop"]
Preference = Literal["refuse", "chosen"]
TRAIN_ON: tuple[TrainOn, ...] = get_args(TrainOn)
REASONING: tuple[Reasoning, ...] = get_args(Reasoning)
PREFERENCE: tuple[Preference, ...] = get_args(Preference)


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """What a run does with what rows say about training. Law: together with a row it decides what is trained on."""

    train_on: TrainOn = "all"
    """Every answer of a conversation, or its last one alone."""
    reasoning: Reasoning = "train"
    """What an assistant thought before it spoke is trained on, is given and not trained on, or is left out."""
    preference: Preference = "refuse"
    """Rows with a chosen and a rejected answer are refused, or trained on as the chosen one."""
    row_weight: bool = False
    """Whether a row's bare `weight` is how much its loss counts."""
    loss_weights: bool = False
    """Whether weights between 0 and 1 (or above) are handed over with the batch, for a loss that uses them."""
    ignore_keys: tuple[str, ...] = ()
    """Keys that say how to train and are left unread on purpose; `*` is all of them."""


WEIGHT_KEYS = ("weight", "loss", "loss_weight", "loss_scale", "train", "training", "loss_mask")
"""Under which keys a message says how much its loss counts: OpenAI, ms-swift, Axolotl."""
REASONING_KEYS = ("reasoning_content", "reasoning", "thinking")
"""Under which keys a message says what was thought before it was spoken."""
TOOL_KEYS = ("tool_calls", "tool_call_id", "name")
LIMIT_KEYS = (
    *("max_pixels", "min_pixels", "total_pixels", "resized_height", "resized_width"),
    *("fps", "nframes", "min_frames", "max_frames", "video_start", "video_end"),
)
"""Limits of a picture or a clip, as Qwen's own tools write them."""
REJECTED_KEYS = ("rejected", "rejected_response", "rejected_messages", "rejected_images")

HOW_TO_TRAIN: Mapping[str, str] = {
    "weight": "row_weight=True (--row-weight), where it is how much the row's loss counts",
    **dict.fromkeys(("objects", "ref", "bbox"), "boxes written into the text by your own code"),
    **dict.fromkeys(REJECTED_KEYS, 'preference="chosen" (--preference chosen), which trains on the chosen answer'),
    **dict.fromkeys(REASONING_KEYS, "reasoning beside what an assistant says"),
    **dict.fromkeys(WEIGHT_KEYS[1:], "weights of what an assistant says"),
    **dict.fromkeys(LIMIT_KEYS, "limits set where the processor is loaded (its size, fps …)"),
    **dict.fromkeys(("tools", "tool_calls"), "tools beside messages"),
    "chat_template_kwargs": "a chat template that needs none",
}
"""Keys that say how to train, and how they are obeyed."""
HARMLESS = frozenset(
    {
        *("id", "ids", "_id", "idx", "index", "uid", "uuid", "key", "hash", "md5", "sha256", "sample_id", "image_id"),
        *("question_id", "row_id", "source", "sources", "dataset", "dataset_name", "data_source", "origin", "split"),
        *("subset", "task", "task_type", "category", "type", "tags", "topic", "domain", "score", "scores", "rating"),
        *("difficulty", "quality", "language", "lang", "license", "url", "author", "date", "time", "timestamp"),
        *("created_at", "version", "meta", "metadata", "info", "extra", "comment", "notes", "width", "height", "size"),
        *("n_tokens", "num_tokens", "length", "token_count", "_text_tokens", "_media_tokens", "mm_inputs_meta"),
        *("detail", "cache_control", "conversation_id", "turn", "turn_id", "model"),
    }
)
"""Keys that say nothing about training, as far as anybody has seen: names, places, scores."""


def plain_name(key: str) -> str:
    """A key without its place: `weight` of `messages[].weight (user)`.

    >>> plain_name("messages[].weight (user)"), plain_name("id")
    ('weight', 'id')
    """
    return key.partition(" ")[0].rpartition(".")[2]


def kind_of(key: str) -> Literal["how_to_train", "harmless", "unread"]:
    """What is said of a key that nobody reads."""
    name = plain_name(key)
    if name in HOW_TO_TRAIN:
        return "how_to_train"
    return "harmless" if name in HARMLESS else "unread"


def given(value: Any) -> bool:
    """Whether a key says something: not null, and not an empty text, list or object. (Tables fill gaps with these.)

    >>> given(0), given(False), given(None), given([]), given("")
    (True, True, False, False, False)
    """
    return value is not None and not (isinstance(value, (str, list, tuple, Mapping)) and not value)


def unread_keys(value: Mapping[str, Any], read: Iterable[str], place: str = "") -> Iterator[str]:
    """The keys of a mapping that say something and are not among those that are read.

    >>> list(unread_keys({"content": "Hi", "mood": "glad", "name": None}, {"content"}, "messages[]."))
    ['messages[].mood']
    """
    return (f"{place}{key}" for key, own in value.items() if key not in read and given(own))


def refuse_disobeyed(keys: Iterable[str], reading: Reading, where: str) -> None:
    """Refuse keys that say how to train and are not obeyed, unless they are ignored on purpose."""
    if "*" in reading.ignore_keys:
        return
    for key in keys:
        name = plain_name(key)
        if name in HOW_TO_TRAIN and not {key, name} & set(reading.ignore_keys):
            raise ConfigError(
                found=f"{key!r}, which says how to train and is not obeyed",
                wanted=f"{HOW_TO_TRAIN[name]}; or ignore_keys=[{name!r}] (--ignore-key {name})",
                consequence="the run would train otherwise than the row says",
                where=where,
            )
