"""`nemo_automodel.components.datasets.vlm.datasets`, under its names.

Every `make_…_dataset` gives examples in the conversation form (`vlm/examples.py`). Nothing here opens a picture
before it is asked for, and nothing draws from a global generator.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from lading.conversation import Layout, presets
from lading.conversation.keys import Reading
from lading.encode.encoder import Encoder
from lading.encode.processor_facts import read_processor
from lading.errors import ConfigError, Reason, SkipSample, UnknownName
from lading.ledger import Ledger
from lading.media import audio
from lading.media.opening import corrupt_as_skip, open_picture, readable
from lading.records import Conversation, Encoded, MediaPart, Part, Row, SampleKey
from lading.sources.hub import LOAD_OPTIONS, open_hub
from lading.sources.json_array import JsonArrayFile, begins_array
from lading.sources.jsonl import JsonlFile
from lading.sources.meta import COLUMNS, TAGS
from lading.vlm.estimate import collect_stats as _collect_sample_stats
from lading.vlm.examples import Example, Examples, from_example, read_example, to_example
from lading.vlm.mixture import load, open_mixture, own_share, rows_of_rank
from lading.vlm.mixture import log_summary as _log_dataset_loading_summary
from lading.vlm.padded_batches import as_inputs
from lading.vlm.replacement import Indexed, Replacing

__all__ = [
    "PreTokenizedDatasetWrapper",
    "RobustDatasetWrapper",
    "_ExamplesWithStats",
    "_collect_sample_stats",
    "_convert_sharegpt_to_conversation",
    "_load_json_or_jsonl",
    "_load_jsonl_for_rank",
    "_log_dataset_loading_summary",
    "make_cord_v2_dataset",
    "make_cv17_dataset",
    "make_medpix_dataset",
    "make_meta_dataset",
    "make_rdr_dataset",
    "make_unimm_chat_dataset",
]

logger = logging.getLogger(__name__)
_ORIENTATION = 0x0112


def make_rdr_dataset(path_or_dataset: Any = "quintend/rdr-items", split: str = "train", **kwargs: Any) -> Examples:
    """RDR (columns `image`, `text`): describe the picture.

    This and the next four read a hub id, a local folder (saved by `save_to_disk`, or one `load_dataset` understands) or
    an open `Dataset`; `split` may be cut (`train[:10]`). They give a lazy sequence: a row is read when it is asked for,
    and of its picture the header alone. Of further arguments, those in `sources.hub.LOAD_OPTIONS` go to `load_dataset`
    and `prompt` replaces the question; others are warned about and ignored.
    """
    return _open_preset(path_or_dataset, split, kwargs, read=presets.rdr, columns=presets.RDR, own=("prompt",))


def make_cord_v2_dataset(
    path_or_dataset: Any = "naver-clova-ix/cord-v2", split: str = "train", **kwargs: Any
) -> Examples:
    """CORD-v2 (columns `image`, `ground_truth`): the receipt as token text; `seed` chooses among several parses."""
    return _open_preset(
        path_or_dataset, split, kwargs, read=presets.cord_v2, columns=presets.CORD_V2, own=("prompt", "seed")
    )


def make_medpix_dataset(
    path_or_dataset: Any = "medpix-dataset/medpix-dataset", split: str = "train", **kwargs: Any
) -> Examples:
    """MedPix (columns `image_id`, `question`, `answer`)."""
    return _open_preset(path_or_dataset, split, kwargs, read=presets.medpix, columns=presets.MEDPIX)


def make_cv17_dataset(
    path_or_dataset: Any = "ysdede/commonvoice_17_tr_fixed", split: str = "train", **kwargs: Any
) -> Examples:
    """CommonVoice 17 (columns `audio`, `transcription`): write down what is said.

    The recording stands in the conversation as it is stored, and beside it decoded: `audio` is (samples [T], rate).
    `sampling_rate` asks for another rate than the recording's own, as does the column's `Audio(sampling_rate=…)`.
    """
    own = ("prompt", "sampling_rate")
    return _open_preset(path_or_dataset, split, kwargs, read=presets.cv17, columns=presets.CV17, own=own)


def make_unimm_chat_dataset(
    path_or_dataset: Any = "Yirany/UniMM-Chat", split: str = "train", **kwargs: Any
) -> Examples:
    """UniMM-Chat (columns `image`, `conversation`): several turns, the picture at every `<image>` mark."""
    return _open_preset(path_or_dataset, split, kwargs, read=presets.unimm_chat, columns=presets.UNIMM_CHAT)


def _open_preset(
    path_or_dataset: Any,
    split: str,
    options: Mapping[str, Any],
    *,
    read: Callable[..., Conversation],
    columns: Sequence[str],
    own: Sequence[str] = (),
) -> Examples:
    """The examples of a data set; `own` are the options that its `read` takes, and, for sound, a sampling rate."""
    _warn_about_unknown(options, (*own, *LOAD_OPTIONS), "options of this data set")
    loading = {name: options[name] for name in LOAD_OPTIONS if name in options}
    rows = open_hub(path_or_dataset, split, columns=columns, options=loading)
    asked = {name: options[name] for name in own if name in options}
    rate = asked.pop("sampling_rate", None) or rows.sampling_rates.get("audio")
    return Examples(rows=rows, read=partial(_read_preset, read=partial(read, **asked), rate=rate))


def _read_preset(row: Row, *, read: Callable[[Row], Conversation], rate: int | None) -> Example:
    """A row of a well-known data set as an example: its pictures opened, their header alone, and its sound decoded
    beside the conversation, as (samples [T], rate); a rate of `None` is the recording's own.
    """
    conversation = read(row)
    messages = tuple(
        replace(message, parts=tuple(_with_picture(part) for part in message.parts))
        for message in conversation.messages
    )
    example = to_example(replace(conversation, messages=messages))
    for part in conversation.media:
        if part.kind == "audio":
            own_rate = rate or audio.measure(part).rate
            example["audio"] = (audio.decode(part, own_rate), own_rate)
    return example


def _with_picture(part: Part) -> Part:
    """The part with its picture opened, whose pixels are not read until somebody looks at them.

    One that EXIF turns is turned, for which it must be decoded; the others wait. The file is not kept open: a list of
    many such pictures would use up the process's file handles.
    """
    from PIL import Image, ImageOps

    if not isinstance(part, MediaPart) or part.kind != "image" or isinstance(part.reference, Image.Image):
        return part
    source = readable(part)
    with corrupt_as_skip(part, OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        picture = open_picture(part, io.BytesIO(Path(source).read_bytes()) if isinstance(source, str) else source)
        # Asking a PNG without the field in its header would decode it all, only to look behind the pixels.
        unturned = picture.format == "PNG" and "exif" not in picture.info
        if not unturned and picture.getexif().get(_ORIENTATION, 1) != 1:
            picture = ImageOps.exif_transpose(picture)
    return replace(part, reference=picture)


def _warn_about_unknown(given: Iterable[str], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known:
            logger.warning("ignored an option: %s", UnknownName(kind="option", name=name, known=known, where=where))


def _convert_sharegpt_to_conversation(
    example: Mapping[str, Any],
    columns: Mapping[str, str] | None = None,
    tags: Mapping[str, str] | None = None,
    media_dir: str | None = None,
) -> Example:
    """One ShareGPT row as an example; `<image>`, `<video>` and `<audio>` marks become media at their places.

    >>> row = {"conversations": [{"from": "human", "value": "<image>Who?"}, {"from": "gpt", "value": "Ada."}],
    ...        "images": ["ada.jpg"]}
    >>> _convert_sharegpt_to_conversation(row, media_dir="pictures")["conversation"][0]["content"]
    [{'type': 'image', 'image': 'pictures/ada.jpg'}, {'type': 'text', 'text': 'Who?'}]
    """
    for kind, names, known in (("column", columns, COLUMNS), ("tag", tags, TAGS)):
        for name in names or ():
            if name not in known:
                raise UnknownName(kind=kind, name=name, known=known)
    layout = Layout(columns=columns or {}, tags=tags or {}, media_dir=Path(media_dir) if media_dir else None)
    return read_example(Row(key=SampleKey(index=0, source="(example)", where="(example)"), value=example), layout)


def _load_json_or_jsonl(file_path: str | Path) -> list[dict[str, Any]]:
    """All rows of a JSON array or a JSONL file. What a file is called tells which; otherwise, how it begins."""
    path = Path(file_path)
    kind = path.suffix.lower()
    is_array = kind == ".json" or (kind != ".jsonl" and begins_array(path))
    file = JsonArrayFile(path) if is_array else JsonlFile(path)
    return [dict(file.read(number)) for number in range(len(file))]


def _load_jsonl_for_rank(
    file_path: str | Path, sample_ratio: float, rank: int, world_size: int
) -> tuple[list[dict[str, Any]], int]:
    """One rank's rows of a JSONL file and the number of rows in it; only those rows are parsed.

    The ratio comes first (`Random(42).sample` over all rows; above 1, whole repeats before it), then
    `[rank::world_size]`, for every ratio.
    """
    file = JsonlFile(Path(file_path))
    numbers = rows_of_rank(len(file), sample_ratio, rank, world_size)
    return [dict(file.read(number)) for number in numbers.tolist()], len(file)


class _ExamplesWithStats(list[Example]):
    """A list of examples that carries its statistics.

    >>> examples = _ExamplesWithStats([{"conversation": []}])
    >>> examples.stats = _collect_sample_stats(examples)
    """

    __slots__ = ("stats",)
    stats: dict[str, int]


def make_meta_dataset(
    path_or_dataset: str | Path,
    dataset_names: Sequence[str] | None = None,
    split: str = "train",
    shard_data: bool = False,
    rank: int | None = None,
    world_size: int | None = None,
    *,
    lazy: bool = False,
    strict: bool = True,
    media_roots: Sequence[str | Path] | None = None,
    ignore_keys: Sequence[str] = (),
    **kwargs: Any,
) -> _ExamplesWithStats | Examples:
    """The data sets of a meta file as one list of examples, with `.stats`.

    With `shard_data`, a rank gets every `world_size`-th sample of every data set, after its ratio. Shares may differ by
    one sample for each data set, because none is cut off: let every rank take the steps of the largest share,
    `stats["n_samples_largest_share"]`, which is the same number on all ranks, and begin its own share again if it runs
    out; then all stay in step.

    `lazy` gives the same examples as a sequence over the memory-mapped files: nothing is parsed before it is asked for.
    A row that cannot be used is raised at once, with its place; with `strict=False` it is left out, logged by name and
    counted in `stats["n_dropped"]`. With `media_roots`, media must lie below these folders. Keys of rows that say how
    to train and are not obeyed are refused, unless they are among `ignore_keys`. `split` is unused, like further
    arguments, which are warned about.
    """
    del split
    _warn_about_unknown(kwargs, ("lazy", "strict", "media_roots", "ignore_keys"), "make_meta_dataset")
    if dataset_names is not None and not dataset_names:
        raise ConfigError(found="an empty list of data set names", wanted="names, or None for all of them")
    names = [dataset_names] if isinstance(dataset_names, str) else dataset_names
    reading = Reading(ignore_keys=tuple(ignore_keys))
    mixture = open_mixture(path_or_dataset, names, *own_share(shard_data, rank, world_size), media_roots, reading)
    if lazy:
        return mixture.examples
    loaded, stats = load(mixture, strict=strict)
    examples = _ExamplesWithStats(loaded)
    examples.stats = stats
    return examples


class PreTokenizedDatasetWrapper(Replacing):
    """Tokenises a sample when it is asked for, so that a collate function need only pad.

    A sample is a dict of `input_ids`, `attention_mask` and `labels` [T] (unshifted), and its media tensors. One that is
    longer than `max_length` once its media are counted in, or that fails in any other way, is replaced: by whom is a
    function of (seed, epoch, index, attempt), and is written into the `ledger` if one is given (`account()` gathers
    what workers wrote). With `max_retries` used up, `TooManyFailures` lists the causes.

    No placeholder picture is put into a sample without media: it would be seen by the sample's own tokens. A batch gets
    one, where it is needed, behind all real documents.
    """

    def __init__(
        self,
        dataset: Indexed,
        processor: Any,
        max_length: int | None = None,
        max_retries: int = 10,
        seed: int = 0,
        ledger: Ledger | None = None,
    ) -> None:
        if max_length is not None and max_length < 1:
            raise ConfigError(found=f"max_length {max_length}", wanted="1 or more, or None", where=type(self).__name__)
        super().__init__(dataset, max_retries=max_retries, seed=seed, ledger=ledger)
        self.processor, self.max_length = processor, max_length
        self.encoder = Encoder(facts=read_processor(processor))

    def conversation(self, index: int) -> Conversation:
        """What a sample says, before it is tokenised."""
        return from_example(self.dataset[index], self.key(index))

    def encoded(self, index: int) -> Encoded:
        """Sample `index` itself, with the counts of its media; `SkipSample` where `[index]` would replace it."""
        encoded = self.encoder.encode(self.conversation(index))
        tokens = encoded.document.tokens
        if self.max_length is not None and tokens > self.max_length:
            raise SkipSample(
                Reason.TOO_LONG,
                found=f"{tokens} tokens, media included",
                wanted=f"at most {self.max_length} (max_length)",
                where=encoded.document.key.where,
            )
        return encoded

    def fetch(self, index: int) -> Any:
        """One sample as tensors."""
        return as_inputs(self.encoded(index))


class RobustDatasetWrapper(Replacing):
    """Any data set, with samples that fail replaced by the rules of `PreTokenizedDatasetWrapper`.

    >>> class Halves:
    ...     def __len__(self): return 4
    ...     def __getitem__(self, index): return 12 // index
    >>> RobustDatasetWrapper(Halves())[0] in (12, 6, 4)
    True
    """

    def __init__(self, dataset: Indexed, max_retries: int = 10, seed: int = 0, ledger: Ledger | None = None) -> None:
        super().__init__(dataset, max_retries=max_retries, seed=seed, ledger=ledger)
