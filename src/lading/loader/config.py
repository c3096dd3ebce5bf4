"""What the user may ask for. Every mistake is reported at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, get_args

from lading.addresses import address_of
from lading.conversation.keys import PREFERENCE, REASONING, TRAIN_ON, Preference, Reading, Reasoning, TrainOn
from lading.errors import ConfigError, UnknownName
from lading.family import ATTENTIONS, PIXELS, TOKENIZERS, Attention, Pixels, TokenizerChoice
from lading.loader.option_hints import LOADER_ONLY, hint_for
from lading.plan.knapsack import ALGORITHMS
from lading.plan.make import DEFAULT_ALGORITHM, DEFAULT_PLACING
from lading.plan.order import PLACINGS
from lading.records import TOO_LONG, TooLong

LEAST: Final = {
    "pack_size": 1,
    "batch_size": 1,
    "world_size": 1,
    "rank": 0,
    "seed": 0,
    "epoch": 0,
    "num_workers": 0,
    "count_workers": 0,
    "max_failures": 0,
    "microbatches": 0,
}
"""Options that are whole numbers, and the least each may be."""
MOST_SECONDS: Final = 100_000_000
"""Seconds that a sample may be given: three years. Timers of the system take no endless ones."""
LastStep = Literal["repeat", "drop"]
CHOICES: Final = {
    "attention": ATTENTIONS,
    "pixels": PIXELS,
    "tokenizer": TOKENIZERS,
    "algorithm": tuple(ALGORITHMS),
    "placing": tuple(PLACINGS),
    "last_step": get_args(LastStep),
    "too_long": TOO_LONG,
    "train_on": TRAIN_ON,
    "reasoning": REASONING,
    "preference": PREFERENCE,
}
"""Options that are one of a few names."""
DECODE_SECONDS: Final = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LoaderConfig:
    """Options of the loader.

    >>> LoaderConfig.of(pack_size=0, seed=-1, attention="flash")
    Traceback (most recent call last):
        ...
    lading.errors.ConfigError: found pack_size 0 (wanted a whole number from 1 up), seed -1 (…), attention 'flash' (…)
    """

    pack_size: int
    """The most tokens that a pack may hold, which is one row of a batch: the maximum sequence length (`max_length`,
    `cutoff_len`) of training."""
    batch_size: int = 1
    """The number of packs (rows) in a batch; keep it at 1 with `flash_attention_2`, which finds documents in a single
    row only, while `attention="varlen"` takes any number."""
    world_size: int = 1
    """The number of data-parallel ranks that train together; where neither it nor `rank` is given, both come from the
    `torch.distributed` process group."""
    rank: int = 0
    """Which of these ranks this process is, counted from 0; every rank gets batches of its own."""
    seed: int = 0
    """The seed of the shuffling: the same corpus, options, seed and epoch give the same batches in the same order."""
    epoch: int = 0
    """The epoch to begin with, which decides the order of the samples; each further full pass over the loader is the
    next."""
    num_workers: int = 0
    """The number of worker processes that decode media and prefetch batches (two for each worker) while the model
    trains; with 0, this process makes each batch when it is asked for."""
    count_workers: int = 0
    """The number of processes that count the tokens of a corpus whose lengths are not cached yet; with 0 or 1, this
    process counts alone."""
    cache: bool | str | os.PathLike[str] = True
    """Whether counted lengths are kept on disk beside the data and used again in the next run; a path keeps them in
    that folder instead, and `False` keeps them nowhere."""
    tokenizer: TokenizerChoice = "auto"
    """What turns text into token ids: `gigatoken`, many times as fast as the processor's own tokenizer, where its ids
    were seen to be the same and as long as they are (`"auto"`), or the tokenizer alone (`"exact"`)."""
    attention: Attention = "positions"
    """How the documents of a pack are kept apart: by `position_ids` that restart, without any attention mask
    (`"positions"`), by a dense attention mask (`"mask"`), or by the boundaries of the documents (`"varlen"`,
    `cu_seq_lens`) for flash attention and `lading.attention`."""
    algorithm: str = DEFAULT_ALGORITHM
    """The packing algorithm, which chooses the samples that share a pack; `"balanced"` gives every pack its share of
    images, of long documents and of short ones."""
    placing: str = DEFAULT_PLACING
    """How packs are given to the steps and ranks of an epoch; `"balanced"` gives the ranks of a step equal work in
    language, attention and vision."""
    last_step: LastStep = "repeat"
    """What happens where the packs of an epoch do not come out even among the ranks: `"repeat"` fills the last step
    with packs that were trained on before, `"drop"` leaves the remaining ones out (`drop_last`), and the ledger names
    the samples of either."""
    validation: bool = False
    """Whether this is a loader of validation (evaluation, held-out) data: every pass has the same batches in the same
    order, from the first one on, and no sample counts twice, because packs that fill the last step or stand in for
    unreadable ones come without labels."""
    too_long: TooLong = "drop"
    """What becomes of a sample longer than `pack_size`: `"drop"` leaves it out by name, `"truncate"` ends the
    conversation behind the last answer that fits and never cuts an image, a clip or a sound in two."""
    strict: bool = False
    """Whether the first bad sample raises an error, instead of being skipped and written into the ledger."""
    max_failures: int = 100
    """How many samples may fail to open during training, after they were counted and planned, before the run stops
    with `TooManyFailures`."""
    decode_seconds: float | None = DECODE_SECONDS
    """The timeout, in seconds, for reading and decoding one sample, which is then skipped as `decode_timeout`; `None`
    waits forever."""
    fixed_length: bool = False
    """Whether every row gets padding up to `pack_size`, so that all batches have the same number of tokens, for
    compiled models (`torch.compile`)."""
    placeholder_media: bool = False
    """Whether batches without images and videos get a small grey image, in a document of its own that no real token
    sees: under DDP, FSDP and ZeRO every rank needs a pass through the vision tower, and packs leave room for it."""

    microbatches: int = 0
    """The number of microbatches that a step of a pipeline schedule runs (pipeline parallelism), of which `batch_size`
    must be a multiple; batches then have `step_inputs` for `schedule.step`, and one shape: rows of `pack_size` tokens,
    and rows of padding alone where an epoch does not come out even."""

    pixels: Pixels = "auto"
    """Where the pixel values of a batch are normalised (scaled to float32): where the batch is used, by
    `batch.to(device)` or on the CPU when they are first read, while workers hand over bytes, an eighth of the size for
    an image (`"auto"`; as `"model"` for families that cannot); in the workers (`"model"`); or by
    `loader.normalise(batch)` (`"uint8"`). The model is fed the same each time."""
    draft: bool = False
    """Whether a large JPEG is decoded at a half, a quarter or an eighth of its resolution where that is still as large
    as the resized image: faster, but the pixels differ slightly from the processor's."""

    train_on: TrainOn = "all"
    """Which answers have labels: every one of a conversation (`"all"`), or its last one (`"last"`). A message's own
    `weight`, `loss` or `train` of 0 or false masks it out of the loss in any case."""
    reasoning: Reasoning = "train"
    """What becomes of `reasoning_content` (or `reasoning`, `thinking`) beside an answer: it is trained on, it is in the
    context without labels (`"given"`), or it is left out (`"drop"`)."""
    preference: Preference = "refuse"
    """Rows with a chosen and a rejected answer (DPO data) are refused, or trained on as the chosen one (`"chosen"`)."""
    row_weight: bool = False
    """Whether a row's bare `weight` says how much its loss counts; `loss_weight` always does."""
    loss_weights: bool = False
    """Whether every batch carries `loss_weights`, for a loss that uses them (`lading.weighted_loss`): wanted where rows
    have weights other than 0 and 1."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    """What the chat template is handed besides the conversation, as `apply_chat_template` would be
    (`chat_template_kwargs`): `{"preserve_thinking": True}`."""
    ignore_keys: Sequence[str] = ()
    """Keys of rows, messages or parts that say how to train and that are left unread on purpose."""

    @property
    def reading(self) -> Reading:
        """What is done with what rows say about training."""
        names = (own.name for own in fields(Reading) if own.name != "ignore_keys")
        return Reading(ignore_keys=tuple(self.ignore_keys), **{name: getattr(self, name) for name in names})

    @classmethod
    def of(cls, **options: Any) -> LoaderConfig:
        """A checked configuration from keyword options."""
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                names = (*known, *LOADER_ONLY)
                raise UnknownName(kind="option", name=name, known=names, where="Loader", hint=hint_for(name))
        if "pack_size" not in options:
            raise ConfigError(found="no pack_size", wanted="the number of tokens in a pack", where="Loader")
        problems = [problem for name, value in options.items() if (problem := _problem(name, value))]
        rank, world_size = options.get("rank", 0), options.get("world_size", 1)
        if not problems and rank >= world_size:
            problems.append(f"rank {rank} (wanted 0 to {world_size - 1}, at world size {world_size})")
        pieces, rows = options.get("microbatches", 0), options.get("batch_size", 1)
        if not problems and pieces and rows % pieces:
            problems.append(f"batch_size {rows} with {pieces} microbatches (wanted as many rows in each)")
        if pieces and options.get("loss_weights"):
            problems.append(
                "loss_weights with microbatches (wanted one of them: a schedule's loss has no place for them)"
            )
        if problems:
            raise ConfigError(found=", ".join(problems), where="Loader")
        return cls(**options)


def _problem(name: str, value: object) -> str:
    """What is wrong with one option; nothing where all is well."""
    if name in CHOICES:
        return "" if value in CHOICES[name] else f"{name} {value!r} (wanted one of {', '.join(CHOICES[name])})"
    if name in LEAST:
        good = isinstance(value, int) and not isinstance(value, bool) and value >= LEAST[name]
        return "" if good else f"{name} {value!r} (wanted a whole number from {LEAST[name]} up)"
    if name == "decode_seconds":
        number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
        good = value is None or 0 < number <= MOST_SECONDS
        return "" if good else f"decode_seconds {value!r} (wanted seconds above 0, at most {MOST_SECONDS:,}, or None)"
    if name == "cache":
        good = isinstance(value, bool) or (isinstance(value, (str, os.PathLike)) and not address_of(value))
        return "" if good else f"cache {value!r} (wanted True, False or a local folder)"
    if name == "template_options":
        good = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
        return "" if good else f"template_options {value!r} (wanted a mapping of names to values)"
    if name == "ignore_keys":
        good = isinstance(value, (list, tuple)) and all(isinstance(key, str) for key in value)
        return "" if good else f"ignore_keys {value!r} (wanted a list of keys)"
    return "" if isinstance(value, bool) else f"{name} {value!r} (wanted True or False)"
