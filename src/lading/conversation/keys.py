"""Keys of a row, its messages and their parts: which are read, and what is said of those that nobody reads.

A key that says how to train (`obeyed_by`) and is not obeyed ends the run, by name, unless it is ignored on purpose
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

from lading.errors import ConfigError, UnknownName
from lading.records import REASONING_KEYS

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

    def __post_init__(self) -> None:
        for kind, name, known in (
            ("train_on", self.train_on, TRAIN_ON),
            ("reasoning", self.reasoning, REASONING),
            ("preference", self.preference, PREFERENCE),
        ):
            if name not in known:
                raise UnknownName(kind=kind, name=name, known=known)


WEIGHT_KEYS = ("weight", "loss", "loss_weight", "loss_scale", "train", "training", "loss_mask")
"""Under which keys a message says how much its loss counts: OpenAI, ms-swift, Axolotl."""
TOOL_KEYS = ("tool_calls", "tool_call_id", "name")
LIMIT_KEYS = (
    *("max_pixels", "min_pixels", "total_pixels", "resized_height", "resized_width"),
    *("fps", "nframes", "min_frames", "max_frames", "video_start", "video_end"),
)
"""Limits of a picture or a clip, as Qwen's own tools write them."""
REJECTED_KEYS = ("rejected", "rejected_response", "rejected_messages", "rejected_images")

_ANSWERS = "weights of what an assistant says; nobody else is trained on"
_LIMITS = "limits set where the processor is loaded (its size, fps …)"
OF_A_ROW: Mapping[str, str] = {
    "weight": "row_weight=True (--row-weight), where it is how much the row's loss counts",
    "objects": "boxes written into the text by your own code",
    **dict.fromkeys(REJECTED_KEYS, 'preference="chosen" (--preference chosen), which trains on the chosen answer'),
    **dict.fromkeys([name for name in LIMIT_KEYS if name != "fps"], _LIMITS),
    "chat_template_kwargs": "template_options= (--template-option), for all rows",
    **dict.fromkeys(("label", "kto_tag"), "rows without answers that are labelled as bad"),
}
"""Keys of rows that say how to train and are not obeyed, and what would do it. (`label` and `kto_tag` where they are
true or false.)"""
OF_A_MESSAGE: Mapping[str, str] = {
    **dict.fromkeys((*WEIGHT_KEYS, "train_detail", "training_detail", "train_on_turn"), _ANSWERS),
    **dict.fromkeys((*REASONING_KEYS, "tool_calls", "function_call"), "it in a message of the assistant"),
}
OF_A_PART: Mapping[str, str] = dict.fromkeys(LIMIT_KEYS, _LIMITS)
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
    """A key without its place.

    >>> plain_name("messages[].weight"), plain_name("id")
    ('weight', 'id')
    """
    return key.rpartition(".")[2]


def obeyed_by(key: str) -> str | None:
    """What would obey a key that says how to train; `None` for one that does not.

    >>> obeyed_by("messages[].fps"), obeyed_by("fps"), obeyed_by("content[].fps")
    (None, None, 'limits set where the processor is loaded (its size, fps …)')
    """
    place, _, name = key.rpartition(".")
    return (OF_A_ROW if not place else OF_A_MESSAGE if place == "messages[]" else OF_A_PART).get(name)


def kind_of(key: str) -> Literal["how_to_train", "harmless", "unread"]:
    """What is said of a key that nobody reads."""
    if obeyed_by(key) is not None:
        return "how_to_train"
    return "harmless" if plain_name(key) in HARMLESS else "unread"


def given(value: Any) -> bool:
    """Whether a key says something: not null, and not an empty text, list or object. (Tables fill gaps with these.)

    >>> given(0), given(False), given(None), given([]), given(""), given({"bbox": []})
    (True, True, False, False, False, False)
    """
    if isinstance(value, Mapping):
        return any(given(own) for own in value.values())
    return value is not None and not (isinstance(value, (str, list, tuple)) and not value)


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
        wanted, name = obeyed_by(key), plain_name(key)
        if wanted is not None and not {key, name} & set(reading.ignore_keys):
            raise ConfigError(
                found=f"{key!r}, which says how to train and is not obeyed",
                wanted=f"{wanted}; or ignore_keys=[{name!r}] (--ignore-key {name})",
                consequence="the run would train otherwise than the row says",
                where=where,
            )
