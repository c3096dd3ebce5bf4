"""A cleaned copy: good rows byte by byte, the rest by name, the original as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lading import Loader
from lading.doctor import KINDS, examine, write_clean
from lading.errors import ConfigError
from tests.doctor.planted import EXACT, FAULTS, line, picture_bytes, plant, talk, write_clean_corpus

TOY = "toy:qwen3_omni"


def snapshot(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def planted(tmp_path: Path) -> tuple[Path, dict[str, str], bytes]:
    meta = write_clean_corpus(tmp_path / "corpus", samples=200)
    clean = (meta.parent / "talks.jsonl").read_bytes()
    return meta, plant(meta, FAULTS | EXACT), clean


@pytest.mark.parametrize("strict", [False, True])
def test_the_copy_passes_and_the_original_stays(
    planted: tuple[Path, dict[str, str], bytes], tmp_path: Path, strict: bool
) -> None:
    meta, places, clean = planted
    before = snapshot(meta.parent)
    findings = examine(meta, TOY, pack_size=4096)
    copy = write_clean(findings, tmp_path / "copy", strict=strict)
    assert snapshot(meta.parent) == before
    again = examine(copy.meta, TOY, pack_size=4096)
    assert not again.fails(strict=strict)
    out = [kind for kind in places if strict or KINDS[kind].severity == "error"]
    assert copy.left_out_rows == len(out)
    assert again.samples == copy.kept_rows == findings.samples - len(out)
    listed = [json.loads(text) for text in copy.left_out.read_text().splitlines()]
    assert {(entry["where"], entry["kind"]) for entry in listed} >= {(places[kind], kind) for kind in out}
    assert all(entry["detail"] for entry in listed)
    kept = (tmp_path / "copy" / "talks.jsonl").read_bytes()
    if strict:
        assert kept == clean
    else:
        assert [text for text in kept.splitlines() if text in clean.splitlines()] == clean.splitlines()
    # Everything in it can be trained on.
    loader = Loader(copy.meta, "toy:qwen3_omni", pack_size=4096, cache=False)
    assert not loader.lengths.dropped


def test_arrays_and_parquet_keep_their_rows(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    good = [b'{ "messages": [{"role":"user","content":"caf\xc3\xa9?"},{"role":"assistant","content":"\\u00e9"}] }']
    good.append(line(talk("Why?")))
    (tmp_path / "array.json").write_bytes(b"[" + good[0] + b' , {"messages": []},\n ' + good[1] + b"  ,7]")
    rows = [
        talk(f"<image>{place}?", images=[{"bytes": picture_bytes("png", place), "path": None}]) for place in range(4)
    ]
    rows[2]["images"][0]["bytes"] = b""
    rows[2]["images"][0]["path"] = "gone.png"
    table = pyarrow.Table.from_pylist(rows)
    parquet.write_table(table, tmp_path / "data.parquet", row_group_size=3)
    meta = {name: {"file_name": name} for name in ("array.json", "data.parquet")}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    copy = write_clean(examine(tmp_path / "meta.json"), tmp_path / "copy")
    assert (tmp_path / "copy" / "array.json").read_bytes() == b"[\n" + good[0] + b",\n" + good[1] + b"\n]\n"
    assert parquet.read_table(tmp_path / "copy" / "data.parquet").to_pylist() == [rows[0], rows[1], rows[3]]
    assert not examine(copy.meta).findings


def test_names_that_are_no_utf8_and_files_of_one_name(tmp_path: Path) -> None:
    odd = os.fsdecode(b"caf\xe9.jsonl")
    files = ["2-a.jsonl", "a.jsonl", "other/a.jsonl", odd]
    (tmp_path / "other").mkdir()
    for place, name in enumerate(files):
        (tmp_path / name).write_bytes(line(talk(f"{place}?")) + b"\n")
    meta = {name: {"file_name": name} for name in files}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    copy = write_clean(examine(tmp_path / "meta.json"), tmp_path / "copy")
    written = {name: entry["file_name"] for name, entry in json.loads(copy.meta.read_bytes()).items()}
    assert list(written) == files
    for name in files:
        assert (tmp_path / "copy" / written[name]).read_bytes() == (tmp_path / name).read_bytes()


def test_files_that_are_lost_are_left_out_of_the_meta(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path / "corpus", samples=20)
    (meta.parent / "talks.jsonl").write_text('{"broken\n')
    (meta.parent / "array.json").write_text("[")
    copy = write_clean(examine(meta), tmp_path / "copy")
    assert sorted(json.loads(copy.meta.read_text())) == ["clips", "pictures", "sounds"]
    assert not examine(copy.meta).findings
    assert {json.loads(text)["kind"] for text in copy.left_out.read_text().splitlines()} == {
        "malformed_json",
        "unreadable_file",
    }


def test_a_file_without_a_meta_file_gets_one(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path / "corpus", samples=20)
    data = meta.parent / "media" / "pictures.jsonl"
    data.write_bytes((meta.parent / "pictures.jsonl").read_bytes() + shows_nothing())
    copy = write_clean(examine(data), tmp_path / "copy")
    found = examine(copy.meta)
    assert (found.samples, found.media, found.findings) == (10, 10, ())


def shows_nothing() -> bytes:
    return line(talk("<image>?")) + b"\n"


def test_nothing_is_written_over(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path / "corpus", samples=20)
    findings = examine(meta)
    for folder in (meta.parent, meta.parent / "media", meta):
        with pytest.raises(ConfigError, match="a new or empty folder"):
            write_clean(findings, folder)
    (meta.parent / "only.jsonl").write_text("[]\n")
    with pytest.raises(ConfigError, match="no row without a finding"):
        write_clean(examine(meta.parent / "only.jsonl"), tmp_path / "copy")
    assert not (tmp_path / "copy").exists()


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lading.cli", "doctor", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_the_command(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path / "corpus", samples=40)
    done = run(meta)
    assert done.returncode == 0
    assert [text.split(" (")[0] for text in done.stderr.splitlines()] == [
        f"{name}: read as sharegpt" for name in ("pictures", "clips", "sounds", "talks", "array")
    ]
    assert "0 errors, 0 warnings" in done.stdout
    assert "40 samples, 24 media" in done.stdout
    data = meta.parent / "talks.jsonl"
    warned = {"empty_answer": FAULTS["empty_answer"]}
    where = plant(meta, warned)["empty_answer"]
    assert (run(meta).returncode, run(meta, "--strict").returncode) == (0, 1)
    assert f"{where}: turn 2 is empty" in run(meta, "--strict").stdout
    with data.open("ab") as file:
        file.write(b'{"broken\n' * 5)
    done = run(meta, "--fix", tmp_path / "copy")
    assert done.returncode == 1
    assert "error malformed_json × 5\n  The sample is left out of training.\n" in done.stdout
    assert "… and 2 more" in done.stdout
    assert "5 errors, 1 warning" in done.stdout
    assert run(tmp_path / "copy" / "meta.json").returncode == 0
    told = json.loads(run(meta, "--json", "--processor", "toy:qwen3_omni", "--pack-size", "512").stdout)
    assert (told["errors"], told["warnings"], told["samples"]) == (5, 1, 46)
    assert {kind["kind"]: kind["count"] for kind in told["kinds"]} == {"malformed_json": 5, "empty_answer": 1}
    assert [len(kind["findings"]) for kind in told["kinds"]] == [5, 1]
    for wrong in ([tmp_path / "gone.json"], [meta, "--fix", meta.parent], [meta, "--pack-size", "9"]):
        done = run(*wrong)
        assert (done.returncode, done.stdout) == (2, "")
        assert "error" in done.stderr
