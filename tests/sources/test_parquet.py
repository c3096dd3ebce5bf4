"""Parquet by row number: real files, real pictures, bounded memory."""

import json
import logging
import multiprocessing
import pickle
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
import torch
from PIL import Image

from lading import Loader, toy
from lading.encode import Encoder
from lading.errors import ConfigError, CorpusError, MissingDependency, SkipSample
from lading.lengths import count_lengths
from lading.lengths.annotate import write_annotated
from lading.samples.samples import Samples
from lading.sources import open_corpus, parquet
from lading.sources.parquet import ParquetFile


def write(path: Path, rows: list[dict[str, Any]], group: int = 10) -> Path:
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=group)
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "d.parquet", [{"n": n, "text": f"row {n} " + "x" * 1000} for n in range(95)])


def numbers(file: ParquetFile) -> list[int]:
    return [file.read(row)["n"] for row in range(len(file))]


def test_rows_by_number_in_any_order(data: Path) -> None:
    corpus = open_corpus(data)
    assert len(corpus) == 95
    for number in (94, 0, 10, 9, 50):
        assert corpus.row(number).value["n"] == number
    assert corpus.key(94).where == f"{data} row 94"
    assert corpus.config(0).media_dir == data.parent


def test_empty_groups_and_files(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    schema = pyarrow.schema([("n", pyarrow.int64())])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for values in ([0, 1], [], [2], []):
            writer.write_table(pyarrow.table({"n": values}, schema=schema))
    assert numbers(ParquetFile(path)) == [0, 1, 2]
    assert len(ParquetFile(write(tmp_path / "none.parquet", [{"n": 1}][:0]))) == 0


def test_only_the_last_groups_are_kept(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = ParquetFile(data)
    group = file._size_of(0)
    monkeypatch.setattr(parquet, "KEPT", 3 * group)
    for row in range(95):
        file.read(row)
        held = sum(table.nbytes for table in file._groups.values())
        assert held <= 3.5 * group
    assert 1 <= len(file._groups) <= 3
    monkeypatch.setattr(parquet, "KEPT", 0)
    file.read(0)
    assert list(file._groups) == [0]


def test_a_group_in_use_is_read_once(data: Path) -> None:
    file = ParquetFile(data)
    first = file._group(0)
    file.read(15)
    assert file._group(0) is first
    assert list(file._groups) == [1, 0]


def test_large_groups_are_said(data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        ParquetFile(data)
        assert caplog.text == ""
        monkeypatch.setattr(parquet, "LARGE", 1)
        ParquetFile(data)
    assert "write smaller ones" in caplog.text


def _sum(file: ParquetFile) -> int:
    return sum(numbers(file))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_open_it_for_themselves(data: Path, method: str) -> None:
    file = ParquetFile(data)
    file.read(3)
    assert len(pickle.dumps(file)) < 1000
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_sum, [file, file]) == [sum(range(95))] * 2


def test_what_is_no_parquet_is_refused(tmp_path: Path, data: Path) -> None:
    (tmp_path / "text.parquet").write_text("hello")
    (tmp_path / "cut.parquet").write_bytes(data.read_bytes()[:-100])
    for name in ("text", "cut"):
        with pytest.raises(CorpusError, match=rf"no Parquet.*{name}\.parquet"):
            open_corpus(tmp_path / f"{name}.parquet")
    with pytest.raises(CorpusError, match="found no file"):
        open_corpus(tmp_path / "gone.parquet")


def test_a_broken_row_group_costs_its_rows_alone(data: Path) -> None:
    column = pyarrow.parquet.ParquetFile(data).metadata.row_group(4).column(1)
    content = bytearray(data.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    data.write_bytes(content)
    file = ParquetFile(data)
    assert file.read(39)["n"] == 39
    assert file.read(50)["n"] == 50
    with pytest.raises(SkipSample, match="a row group that cannot be read") as caught:
        file.read(40)
    assert caught.value.where == f"{data} row 40"


def test_without_the_package_it_says_what_to_install(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingDependency, match="pip install pyarrow"):
        open_corpus(data)


def test_pictures_in_columns_train_like_pictures_in_files(tmp_path: Path) -> None:
    """One corpus twice: rows in JSONL with pictures beside them, and both in Parquet."""
    meta = toy.write_corpus(tmp_path, samples=30)
    entries = json.loads(meta.read_text())
    del entries["clips"]
    meta.write_text(json.dumps(entries))
    for name, entry in entries.items():
        rows = [json.loads(line) for line in (tmp_path / entry["file_name"]).read_text().splitlines()]
        for row in rows:
            pictures = [tmp_path / "media" / picture for picture in row.pop("images", [])]
            row["images"] = [{"bytes": picture.read_bytes(), "path": picture.name} for picture in pictures] or None
        entry["file_name"] = write(tmp_path / f"{name}.parquet", rows, group=4).name
    stored = tmp_path / "stored.json"
    stored.write_text(json.dumps(entries))
    options: dict[str, Any] = {"pack_size": 512, "num_workers": 1, "cache": False}
    wanted = [dict(batch) for batch in Loader(meta, "toy:qwen2_5_vl", **options)]
    loader = Loader(stored, "toy:qwen2_5_vl", **options)
    found = [dict(batch) for batch in loader]
    assert sum(own["trained"] for own in loader.ledger.totals().values()) == len(open_corpus(meta))
    assert len(found) == len(wanted) > 1
    for ours, theirs in zip(found, wanted, strict=True):
        assert ours.keys() == theirs.keys()
        assert any(key.startswith("pixel") for key in ours)
        for key, value in ours.items():
            assert torch.equal(value, theirs[key]) if isinstance(value, torch.Tensor) else value == theirs[key]


def test_bytes_have_no_place_in_an_annotated_copy(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    Image.new("RGB", (56, 56)).save(picture)
    messages = [{"from": "human", "value": "<image>What?"}, {"from": "gpt", "value": "Black."}]
    path = write(tmp_path / "d.parquet", [{"conversations": messages, "images": [{"bytes": picture.read_bytes()}]}])
    samples = Samples(corpus=open_corpus(path), encoder=Encoder.of(toy.processor("qwen2_5_vl")))
    with pytest.raises(ConfigError, match=r"found bytes in a row; wanted media by their paths.*d\.parquet.*0"):
        write_annotated(samples, count_lengths(samples), tmp_path / "copy")
    assert not list((tmp_path / "copy").iterdir())
