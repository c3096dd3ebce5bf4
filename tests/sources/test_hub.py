import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from datasets import Audio, Dataset, DatasetDict, Features, Image, Value
from PIL import Image as Pictures

from lading.errors import ConfigError, CorpusError, MissingDependency
from lading.sources.hub import HubRows, open_hub

COLUMNS = ("image", "text")


def pictures(folder: Path, count: int) -> Dataset:
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(count):
        Pictures.new("RGB", (20 + number, 10), (number, 0, 0)).save(folder / f"{number}.png")
    rows = {
        "image": [str(folder / f"{number}.png") for number in range(count)],
        "text": [f"picture {number}" for number in range(count)],
        "more": list(range(count)),
    }
    return Dataset.from_dict(
        rows, features=Features({"image": Image(), "text": Value("string"), "more": Value("int64")})
    )


def texts(rows: HubRows) -> list[str]:
    return [rows.read(number)["text"] for number in range(len(rows))]


def stored(image: dict[str, Any]) -> bytes:
    """A picture as a row holds it undecoded: its bytes, or where they are."""
    return image["bytes"] or Path(image["path"]).read_bytes()


@pytest.fixture
def six(tmp_path: Path) -> Dataset:
    return pictures(tmp_path / "drawn", 6)


def test_a_saved_folder_is_read_back_without_decoding(tmp_path: Path, six: Dataset) -> None:
    six.save_to_disk(tmp_path / "saved")
    rows = open_hub(str(tmp_path / "saved"), "train", columns=COLUMNS)
    assert (len(rows), rows.key(3).where) == (6, f"{tmp_path / 'saved'} train row 3")
    value = rows.row(3).value
    assert set(value) == {"image", "text"}
    assert value["text"] == "picture 3"
    assert stored(value["image"]).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("split", "numbers"),
    [
        ("train", [0, 1, 2, 3]),
        ("train[:2]", [0, 1]),
        ("train[-1:]", [3]),
        ("train[50%:]", [2, 3]),
        ("test", [4, 5]),
        ("train[3:]+test[:1]", [3, 4]),
    ],
)
@pytest.mark.parametrize("given", ["folder", "object"])
def test_splits_and_cuts(tmp_path: Path, six: Dataset, split: str, numbers: list[int], given: str) -> None:
    both: Any = DatasetDict({"train": six.select(range(4)), "test": six.select(range(4, 6))})
    if given == "folder":
        both.save_to_disk(tmp_path / "saved")
        both = tmp_path / "saved"
    assert texts(open_hub(both, split, columns=COLUMNS)) == [f"picture {number}" for number in numbers]


def test_an_open_data_set_is_cut_whatever_its_name(six: Dataset) -> None:
    assert texts(open_hub(six, "validation[2:4]", columns=COLUMNS)) == ["picture 2", "picture 3"]
    assert len(open_hub(six, columns=COLUMNS)) == 6


def test_a_folder_that_load_dataset_understands(tmp_path: Path, six: Dataset) -> None:
    folder = tmp_path / "parquet"
    folder.mkdir()
    six.to_parquet(folder / "train.parquet")
    rows = open_hub(folder, "train[:3]", columns=COLUMNS, options={"cache_dir": str(tmp_path / "cache")})
    assert texts(rows) == ["picture 0", "picture 1", "picture 2"]
    assert stored(rows.read(0)["image"]).startswith(b"\x89PNG")


def test_opening_reads_no_picture(tmp_path: Path) -> None:
    """The files are gone before a row is asked for; only asking could notice."""
    dataset = pictures(tmp_path / "drawn", 3)
    for path in (tmp_path / "drawn").iterdir():
        path.write_bytes(b"no picture any more")
    rows = open_hub(dataset, columns=COLUMNS)
    assert rows.read(2)["text"] == "picture 2"


def test_sound_is_not_decoded_and_its_rate_is_kept(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(800, dtype=np.float32), 8000)
    dataset = Dataset.from_dict({"audio": [str(tmp_path / "a.wav")]}).cast_column("audio", Audio(sampling_rate=16000))
    dataset.save_to_disk(tmp_path / "saved")
    rows = open_hub(tmp_path / "saved", columns=("audio",))
    assert rows.sampling_rates == {"audio": 16000}
    assert isinstance(rows.read(0)["audio"], dict)
    assert "torchcodec" not in sys.modules


def test_formats_are_set_aside_and_transforms_are_kept(six: Dataset) -> None:
    numbers = six.with_format("numpy")
    assert isinstance(open_hub(numbers, columns=("text",)).read(0)["text"], str)
    shouted = six.with_transform(lambda rows: {"text": [text.upper() for text in rows["text"]]})
    assert open_hub(shouted, columns=("text",)).read(0)["text"] == "PICTURE 0"


def test_workers_can_have_it(six: Dataset) -> None:
    rows = pickle.loads(pickle.dumps(open_hub(six, columns=COLUMNS)))
    assert rows.read(1)["text"] == "picture 1"
    with pytest.raises(IndexError):
        rows.key(6)


def test_unknown_columns_are_said_before_anything_is_read(six: Dataset) -> None:
    with pytest.raises(ConfigError) as caught:
        open_hub(six, columns=("image", "ground_truth"))
    assert "found columns image, text, more" in str(caught.value)
    assert "wanted image, ground_truth" in str(caught.value)


@pytest.mark.parametrize("split", ["tain", "train[", "train[:many]"])
def test_an_unknown_split_is_said(tmp_path: Path, six: Dataset, split: str) -> None:
    with pytest.raises(ConfigError, match="found split"):
        open_hub(DatasetDict({"train": six}), split, columns=COLUMNS)
    six.to_parquet(tmp_path / "train.parquet")
    with pytest.raises(CorpusError, match="which datasets cannot open"):
        open_hub(tmp_path, split, columns=COLUMNS, options={"cache_dir": str(tmp_path / "cache")})


def test_no_rows_are_an_error(six: Dataset) -> None:
    with pytest.raises(CorpusError, match="found no rows; wanted at least one"):
        open_hub(six, "train[:0]", columns=COLUMNS)


def test_what_cannot_be_read_by_number_is_refused(six: Dataset) -> None:
    with pytest.raises(ConfigError, match="found a IterableDataset"):
        open_hub(six.to_iterable_dataset(), columns=COLUMNS)
    with pytest.raises(ConfigError, match="found revision for a data set that is open"):
        open_hub(six, columns=COLUMNS, options={"revision": "main"})


def test_a_hub_id_that_cannot_be_reached(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="'nobody/nothing-at-all', which datasets cannot open"):
        open_hub("nobody/nothing-at-all", columns=COLUMNS, options={"cache_dir": str(tmp_path)})
    with pytest.raises(CorpusError, match=r"found no folder \./nobody/nothing/at/all"):
        open_hub("./nobody/nothing/at/all", columns=COLUMNS)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingDependency, match="pip install datasets"):
        open_hub("anything", columns=COLUMNS)
