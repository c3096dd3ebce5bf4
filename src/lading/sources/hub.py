"""Hugging Face data sets as rows: from a hub id, a local folder or an open `Dataset`.

Pictures, clips and sounds are not decoded here: a row holds their bytes or path, as stored. So opening costs nothing,
reading a row costs its bytes, and torchcodec is not needed for sound.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lading.addresses import refuse_address
from lading.errors import ConfigError, CorpusError, MissingDependency
from lading.private_names import dataset_fingerprint
from lading.progress import bars_like_ours
from lading.records import Row, SampleKey

LOAD_OPTIONS = ("name", "data_dir", "data_files", "cache_dir", "revision", "token", "num_proc")
"""Options of `datasets.load_dataset` that are passed on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class HubRows:
    """Rows of one split, by number. Law: asking for a row reads that row alone."""

    dataset: Any
    name: str
    split: str
    features: Any = None
    """How stored values become Python's, media left as they are; `None` where a transform of the user's own does it."""
    sampling_rates: Mapping[str, int] = field(default_factory=dict)
    """Columns of sound that ask for a rate of their own."""

    def __len__(self) -> int:
        return len(self.dataset)

    def where(self, number: int) -> str:
        return f"{self.name} {self.split} row {number}"

    def read(self, number: int) -> Mapping[str, Any]:
        """One row's value, media undecoded."""
        found = self.dataset[number]
        value: Mapping[str, Any] = (
            found if self.features is None else self.features.decode_example(found.to_pylist()[0])
        )
        return value

    def fingerprint(self, *, timed: bool = True) -> str:
        """What tells one state of the data set from another, in the words of `datasets`."""
        del timed
        return dataset_fingerprint(self.dataset)

    def key(self, number: int) -> SampleKey:
        """The name of a row, without reading it."""
        if not 0 <= number < len(self):
            raise IndexError(f"row {number} of {len(self)}")
        return SampleKey(index=number, source=self.name, where=self.where(number))

    def row(self, number: int) -> Row:
        return Row(key=self.key(number), value=self.read(number))


def open_hub(
    path_or_dataset: Any,
    split: str = "train",
    *,
    columns: Sequence[str] | None = None,
    options: Mapping[str, Any] | None = None,
) -> HubRows:
    """The rows of a split, with just these columns, or all. `split` may be cut: `train[:10]`, `train[50%:]`,
    `train+test`.

    An open `Dataset` has one split, whatever its name: of `split`, only the cut is applied to it.

    >>> open_hub("./nowhere", columns=["image"])
    Traceback (most recent call last):
        ...
    lading.errors.CorpusError: found no folder ./nowhere; wanted a hub id, a folder or a Dataset; nothing was read
    """
    library = _library()
    name = str(path_or_dataset) if isinstance(path_or_dataset, (str, Path)) else type(path_or_dataset).__name__
    opened = _opened(library, path_or_dataset, split, dict(options or {}))
    columns = opened.column_names if columns is None else columns
    missing = [column for column in columns if column not in opened.column_names]
    if missing:
        raise ConfigError(
            found=f"columns {', '.join(opened.column_names) or '(none)'}",
            wanted=f"{', '.join(columns)} (without {', '.join(missing)} there is no conversation)",
            consequence="nothing was read",
            where=f"{name} {split}",
        )
    if len(opened) == 0:
        raise CorpusError(found="no rows", wanted="at least one", where=f"{name} {split}")
    chosen = opened.select_columns(list(columns))
    rates = {
        column: int(feature.sampling_rate)
        for column, feature in chosen.features.items()
        if isinstance(feature, library.Audio) and feature.sampling_rate
    }
    if chosen.format["type"] == "custom":
        # The user's own transform gets media as they are stored. `cast_column` would write a copy of all rows where
        # media lie in lists; only what is made of them changes here.
        plain = deepcopy(chosen)
        plain.info.features.update({column: _as_stored(library, own) for column, own in chosen.features.items()})
        return HubRows(dataset=plain, name=name, split=split, sampling_rates=rates)
    # Other formats would put tensors where text and bytes belong. Arrow's own values are decoded by nobody.
    stored = chosen.with_format("arrow")
    features = library.Features({column: _as_stored(library, own) for column, own in chosen.features.items()})
    return HubRows(dataset=stored, name=name, split=split, features=features, sampling_rates=rates)


def _opened(library: Any, given: Any, split: str, options: dict[str, Any]) -> Any:
    if isinstance(given, (str, Path)):
        return _loaded(library, str(given), split, options)
    if options:
        raise ConfigError(found=f"{', '.join(options)} for a data set that is open", wanted="a hub id or a folder")
    if isinstance(given, library.DatasetDict):
        return _cut(library, given, split)
    if isinstance(given, library.Dataset):
        named = re.match(r"\w+", split)
        return _cut(library, {named.group() if named else split: given}, split)
    raise ConfigError(
        found=f"a {type(given).__name__}",
        wanted="a hub id, a folder, a Dataset or a DatasetDict (rows are read by number, so no IterableDataset)",
    )


def _loaded(library: Any, path: str, split: str, options: dict[str, Any]) -> Any:
    refuse_address(path, wanted="a data set")
    folder = Path(path)
    if not folder.exists() and (path.startswith((".", "/", "~")) or path.count("/") > 1):
        # It would be taken for a hub id, and the network asked for it, for minutes.
        raise CorpusError(
            found=f"no folder {path}", wanted="a hub id, a folder or a Dataset", consequence="nothing was read"
        )
    try:
        if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
            return _opened(library, library.load_from_disk(path), split, options)
        with _bars(library):
            return library.load_dataset(path, split=split, **options)
    except ConfigError:
        raise
    except (OSError, ValueError, library.exceptions.DatasetsError) as error:
        raise CorpusError(
            found=f"{path!r}, which datasets cannot open ({' '.join(str(error).split())[:300]})",
            wanted="a hub id, a folder or a Dataset, with a split of that name",
            consequence="nothing was read",
            where=split,
        ) from error


@contextmanager
def _bars(library: Any) -> Iterator[None]:
    """Inside, bars of `datasets`, and of its downloads, are shown only where ours are."""
    utils: Any = importlib.import_module("huggingface_hub.utils")
    own = (library.is_progress_bar_enabled, library.disable_progress_bars, library.enable_progress_bars)
    downloads = (lambda: not utils.are_progress_bars_disabled(), utils.disable_progress_bars)
    with bars_like_ours(*own), bars_like_ours(*downloads, utils.enable_progress_bars):
        yield


def _cut(library: Any, parts: Mapping[str, Any], split: str) -> Any:
    """The part of an open data set that `split` speaks of, in the language of `load_dataset`."""
    try:
        pieces = library.ReadInstruction.from_spec(split).to_absolute({name: len(part) for name, part in parts.items()})
    except (ValueError, AssertionError) as error:
        raise ConfigError(
            found=f"split {split!r} ({error})", wanted=f"one of {', '.join(parts)}, or a cut like train[:10]"
        ) from error
    cut = [parts[piece.splitname].select(range(piece.from_, piece.to)) for piece in pieces]
    return cut[0] if len(cut) == 1 else library.concatenate_datasets(cut)


def _as_stored(library: Any, feature: Any) -> Any:
    """A feature that leaves media undecoded, however deep they lie: lists of pictures, parts of messages."""
    if isinstance(feature, (library.Image, library.Audio, library.Video)):
        return replace(feature, decode=False)
    if isinstance(feature, dict):
        return {name: _as_stored(library, own) for name, own in feature.items()}
    if isinstance(feature, list):
        return [_as_stored(library, own) for own in feature]
    if isinstance(feature, (library.List, library.LargeList)):
        return replace(feature, feature=_as_stored(library, feature.feature))
    return feature


def _library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError as error:
        raise MissingDependency(package="datasets", purpose="reading Hugging Face data sets") from error
