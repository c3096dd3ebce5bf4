"""Addresses and ids of the hub are called what they are, wherever one can stand; nothing of that name is made."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lading
from lading import toy
from lading.addresses import address_of, hub_id_in, may_be_hub_id
from lading.doctor import examine, open_for_examination
from lading.doctor.clean import check_copy
from lading.plan.file import load_plan, save_plan
from lading.sources import open_corpus
from lading.verify import verify
from lading.vlm.datasets import make_meta_dataset
from tests.cli.test_commands import lading as run

TOY = "toy:qwen2_5_vl"


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=4)


@pytest.mark.parametrize(
    ("place", "address"),
    [
        ("s3://bucket/a", "s3://bucket/a"),
        (Path("s3://bucket/a"), "s3://bucket/a"),
        (Path("hf://datasets/a/b"), "hf://datasets/a/b"),
        (Path("file:///data/a"), "file:///data/a"),
        ("HTTPS://a.b/c", "HTTPS://a.b/c"),
        ("memory://anything", "memory://anything"),
        ("/data/a", ""),
        ("data/a.jsonl", ""),
        ("C:/data", ""),
        ("notes: a.jsonl", ""),
        ("odd:/a", ""),
    ],
)
def test_what_is_an_address(place: str | Path, address: str) -> None:
    assert address_of(place) == address


def test_a_folder_that_is_called_so_is_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert address_of("s3:/a") == "s3://a"
    (tmp_path / "s3:").mkdir()
    assert address_of("s3:/a") == ""


def test_ids_of_the_hub() -> None:
    assert hub_id_in("https://huggingface.co/datasets/a/b/resolve/main/c.jsonl") == ("a/b", True)
    assert hub_id_in("https://example.org/datasets/a/b") == ("", False)
    assert may_be_hub_id("somebody/scans-2.0")
    assert not any(may_be_hub_id(path) for path in ("scans", "./a/b", "/a/b", "a/b/c", "../b"))


READS: dict[str, Callable[[Any, Path], object]] = {
    "corpus": lambda address, meta: open_corpus(address),
    "loader": lambda address, meta: lading.Loader(address, TOY, pack_size=64),
    "doctor": lambda address, meta: open_for_examination(Path(address)),
    "media_dir": lambda address, meta: open_corpus(meta, media_dir=address),
    "media_roots": lambda address, meta: open_corpus(meta, media_roots=["/tmp", address]),
    "processor": lambda address, meta: lading.load_processor(address),
    "model": lambda address, meta: verify(open_corpus(meta), TOY, pack_size=512, limit=1, model=str(address)),
    "plan": lambda address, meta: load_plan(address),
    "examples": lambda address, meta: make_meta_dataset(str(address)),
}
WRITES: dict[str, Callable[[Any, Path], object]] = {
    "cache": lambda address, meta: lading.Loader(meta, TOY, pack_size=64, cache=address),
    "plan": lambda address, meta: save_plan(lading.make_plan(LENGTHS, pack_size=8), address),
    "ledger": lambda address, meta: lading.Ledger(sources=["talks"], source=np.zeros(1, dtype=np.int32)).save(address),
    "clean": lambda address, meta: check_copy(open_for_examination(meta), Path(address)),
}
LENGTHS = lading.LengthTable.of(tokens=np.array([4, 4]))


@pytest.mark.parametrize("scheme", ["s3", "gs", "az", "hf", "https"])
@pytest.mark.parametrize("way", [*READS, *(way for way in WRITES if way not in READS), "writing plan"])
def test_an_address_is_refused_as_one(
    way: str, scheme: str, meta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    address = f"{scheme}://bucket/some/x.jsonl"
    call = WRITES["plan"] if way == "writing plan" else {**WRITES, **READS}[way]
    for given in (address, Path(address)):
        if way == "model" and isinstance(given, Path):
            continue
        with pytest.raises(lading.ConfigError, match=f"{address}|PosixPath") as refused:
            call(given, meta)
        assert "local" in str(refused.value)
    assert list(tmp_path.iterdir()) == [], "nothing was made in the name of an address"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (
            {"file_name": "s3://b/x.jsonl"},
            r"file_name is the S3 address s3://b/x\.jsonl, where a local path .*aws s3",
        ),
        (
            {"file_name": "talks.jsonl", "media_dir": "gs://b/p"},
            "media_dir is the Google Cloud Storage address gs://b/p",
        ),
        (
            {"file_name": "talks.jsonl", "media_roots": ["az://b/p"]},
            "media_roots is the Azure Storage address az://b/p",
        ),
        ({"file_name": "hf://datasets/a/b"}, 'file_name .*where "hf_hub_url": "a/b" belongs'),
        ({"hf_hub_url": "https://huggingface.co/datasets/a/b"}, 'hf_hub_url .*where "hf_hub_url": "a/b" belongs'),
        ({"hf_hub_url": "s3://a/b"}, "hf_hub_url is the S3 address s3://a/b, where an id of the hub belongs"),
        ({"file_name": "somebody/scans"}, 'no file or folder somebody/scans .*write "hf_hub_url": "somebody/scans"'),
    ],
)
def test_a_meta_file_with_addresses(entry: dict[str, Any], said: str, tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"talks": entry}), encoding="utf-8")
    with pytest.raises(lading.ConfigError, match=said):
        open_corpus(tmp_path / "meta.json")


def test_an_id_of_the_hub_is_called_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(lading.CorpusError, match=r'no file or folder somebody/scans.*load_dataset\("somebody/scans"'):
        open_corpus("somebody/scans")
    with pytest.raises(lading.CorpusError, match=r"no file or folder .*/scans; wanted one ending in"):
        open_corpus("scans")
    with pytest.raises(lading.CorpusError, match=r"no file .*/somebody/scans.jsonl"):
        open_corpus("somebody/scans.jsonl").row(0)


def test_a_medium_at_an_address_is_left_out_by_that_name(tmp_path: Path) -> None:
    talk = [{"role": "user", "content": "<image>Who?"}, {"role": "assistant", "content": "Ada."}]
    rows = [{"messages": talk, "images": [f"{scheme}://b/a.png"]} for scheme in ("s3", "gs", "https", "hf")]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    found = examine(tmp_path / "rows.jsonl", TOY).findings
    assert [finding.kind for finding in found].count("unsupported_media") == 4
    told = " ".join(finding.detail for finding in found)
    for name in ("S3", "Google Cloud Storage", "web", "Hugging Face hub"):
        assert f"image at the {name} address" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["count", "s3://bucket/x.jsonl", "--processor", TOY], "the S3 address s3://bucket/x.jsonl; wanted a corpus"),
        (["plan", "META", "--processor", "https://hf.co/a/b", "--pack-size", "64"], 'give the id alone: "a/b"'),
        (["plan", "META", "--processor", TOY, "--pack-size", "64", "--out", "gs://b/plan"], "address gs://b/plan"),
        (["count", "META", "--processor", TOY, "--out", "s3://b/kept"], "address s3://b/kept"),
        (["count", "META", "--processor", TOY, "--annotate", "s3://b/copy"], "address s3://b/copy"),
        (["inspect", "META", "--processor", TOY, "--out", "s3://b/report.html"], "address s3://b/report.html"),
        (["doctor", "META", "--fix", "s3://b/clean"], "address s3://b/clean"),
        (["demo", "--out", "s3://b/demo"], "address s3://b/demo"),
        (["plan", "a/b", "--processor", TOY, "--pack-size", "64"], 'datasets.load_dataset("a/b"'),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_the_command_refuses_addresses(
    arguments: list[str], said: str, meta: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*[str(meta) if argument == "META" else argument for argument in arguments])
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []
