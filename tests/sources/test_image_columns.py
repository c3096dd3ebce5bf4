"""Data sets with pictures and sounds in their columns: the same samples, wherever they are stored, and none decoded."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from datasets import Audio, Dataset, DatasetDict, Features, Image, Json, List, Value
from PIL import Image as Pillow

from lading.encode import Encoder
from lading.errors import ConfigError
from lading.lengths import count_lengths
from lading.loader import Loader, ProcessorFacts, Samples, load_processor, read_processor
from lading.records import Dropped
from lading.sources import open_corpus

COLOURS = ("red", "green", "blue")


@pytest.fixture(scope="module")
def facts() -> ProcessorFacts:
    return read_processor(load_processor("toy:qwen2_5_vl"))


def png(colour: str) -> bytes:
    buffer = io.BytesIO()
    Pillow.new("RGB", (56, 84), colour).save(buffer, format="PNG")
    return buffer.getvalue()


def talk(colour: str) -> list[dict[str, Any]]:
    return [
        {"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "Which colour?"}]},
        {"role": "assistant", "content": [{"type": "text", "text": colour}]},
    ]


def dataset() -> Dataset:
    """TRL's form: messages with bare parts, and a list of pictures beside them."""
    part = {"type": Value("string"), "text": Value("string")}
    features = Features({"images": List(Image()), "messages": List({"role": Value("string"), "content": List(part)})})
    rows = {
        "images": [[{"bytes": png(colour), "path": None}] for colour in COLOURS],
        "messages": [talk(colour) for colour in COLOURS],
    }
    return Dataset.from_dict(rows, features=features)


def saved(folder: Path) -> Any:
    dataset().save_to_disk(folder / "saved")
    return folder / "saved"


def saved_splits(folder: Path) -> Any:
    DatasetDict({"train": dataset()}).save_to_disk(folder / "splits")
    return folder / "splits"


def parquet_file(folder: Path) -> Any:
    dataset().to_parquet(folder / "one.parquet")
    return folder / "one.parquet"


def parquet_folder(folder: Path) -> Any:
    (folder / "many").mkdir()
    for number in range(3):
        part = dataset().select([number])
        part.to_parquet(folder / "many" / f"train-0000{number}-of-00003.parquet")
    return folder / "many"


def in_a_meta_file(folder: Path) -> Any:
    saved(folder)
    (folder / "meta.json").write_text(json.dumps({"colours": {"file_name": "saved", "split": "train[:3]"}}))
    return folder / "meta.json"


def open_already(folder: Path) -> Any:
    return dataset()


@pytest.mark.parametrize("store", [saved, saved_splits, parquet_file, parquet_folder, in_a_meta_file, open_already])
def test_the_same_samples_wherever_they_are(
    tmp_path: Path, facts: ProcessorFacts, store: Callable[[Path], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    where = store(tmp_path)
    monkeypatch.setattr(Image, "decode_example", _refuse)
    samples = Samples(corpus=open_corpus(where), encoder=Encoder(facts=facts))
    assert samples.layouts[0].format == "trl"
    assert [samples.conversation(number).media[0].reference for number in range(3)] == [png(own) for own in COLOURS]
    encoded = [samples.encode(number) for number in range(3)]
    assert not any(isinstance(own, Dropped) for own in encoded)


def _refuse(*_: Any, **__: Any) -> None:
    raise AssertionError("a picture was decoded early")


def test_a_folder_of_pictures(tmp_path: Path, facts: ProcessorFacts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "pictures"
    folder.mkdir()
    with (folder / "metadata.jsonl").open("w") as file:
        for colour in COLOURS:
            (folder / f"{colour}.png").write_bytes(png(colour))
            row = {"file_name": f"{colour}.png", "question": "Which colour?", "answer": colour}
            file.write(json.dumps(row) + "\n")
    samples = Samples(corpus=open_corpus(folder), encoder=Encoder(facts=facts))
    assert samples.layouts[0].format == "question_answer"
    assert {Path(samples.conversation(n).media[0].reference).name for n in range(3)} == {  # type: ignore[arg-type]
        f"{colour}.png" for colour in COLOURS
    }
    assert not count_lengths(samples).dropped


def test_values_of_several_types_are_read_as_written() -> None:
    content: list[Any] = ["Hi", [{"type": "text", "text": "Ho"}]]
    talk = [{"role": "user", "content": content[0]}, {"role": "assistant", "content": content[1]}]
    features = Features({"messages": List({"role": Value("string"), "content": Json()})})
    corpus = open_corpus(Dataset.from_dict({"messages": [talk]}, features=features))
    assert corpus.row(0).value == {"messages": talk}


def test_sounds_as_they_are_stored(tmp_path: Path) -> None:
    soundfile.write(tmp_path / "a.wav", np.zeros(8000, dtype=np.float32), 16000)
    rows = {"audio": [str(tmp_path / "a.wav")], "question": ["What is said?"], "answer": ["Nothing."]}
    Dataset.from_dict(rows).cast_column("audio", Audio()).save_to_disk(tmp_path / "saved")
    facts = read_processor(load_processor("toy:qwen3_omni"))
    samples = Samples(corpus=open_corpus(tmp_path / "saved"), encoder=Encoder(facts=facts))
    assert samples.conversation(0).media[0].kind == "audio"
    assert count_lengths(samples).audios.tolist() == [1]


def test_lengths_are_kept_and_batches_are_made(tmp_path: Path) -> None:
    saved(tmp_path)
    first = Loader(tmp_path / "saved", "toy:qwen2_5_vl", pack_size=256, cache=tmp_path / "kept")
    assert len(list((tmp_path / "kept").iterdir())) == 1
    again = open_corpus(tmp_path / "saved").sources[0].file.fingerprint()
    assert again == first.samples.corpus.sources[0].file.fingerprint()
    assert sum(len(documents) for batch in first for documents in batch.rows) == 3


def test_an_open_corpus_is_not_told_its_format_again() -> None:
    with pytest.raises(ConfigError, match=r"wanted open_corpus\(…, format=…, media_dir=…, media_roots=…\)"):
        Loader(open_corpus(dataset()), "toy:qwen2_5_vl", pack_size=256, format="trl")
