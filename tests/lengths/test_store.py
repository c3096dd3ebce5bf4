"""What is kept is read back whole, or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.cache import cache_folders
from lading.errors import Reason
from lading.lengths import Counted, Store, merge
from lading.lengths.store import ABOUT, DROPPED, LENGTHS, PARTS
from lading.records import Dropped, Length, SampleKey
from lading.sources.files import file_fingerprint


def refused(row: int, detail: str = "no") -> Dropped:
    return Dropped(key=SampleKey(index=row, source="s", where="w"), reason=Reason.BAD_ROW, detail=detail)


def counted(**tokens: int) -> Counted:
    """Rows by name (`r3=7`); 0 tokens are a refusal."""
    rows = sorted(int(name[1:]) for name in tokens)
    answers = [
        Length(tokens=own, label_tokens=1, patch_pairs=2**40) if (own := tokens[f"r{row}"]) else refused(row)
        for row in rows
    ]
    return Counted.of(rows, answers)


def store(folder: Path, file: str = "here/data.jsonl") -> Store:
    return Store(folder=folder, about={"file": "data.jsonl"}, file=file)


@pytest.mark.parametrize("mapped", [False, True])
def test_what_was_sealed_is_the_same_and_memory_mapped_if_it_is_large(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mapped: bool
) -> None:
    own = counted(r0=5, r2=0, r9=7)
    store(tmp_path).seal(own, {"a": 1})
    monkeypatch.setattr("lading.lengths.store.MAPPED_FROM", 0 if mapped else 1 << 20)
    read, notes = store(tmp_path).read()
    assert isinstance(read.records, np.memmap) == mapped
    assert read.records.tolist() == own.records.tolist()
    assert (read.refused, notes) == (own.refused, {"a": 1})
    assert read.records["patch_pairs"].tolist() == [2**40, 0, 2**40]


def test_a_refusal_names_the_file_as_it_is_called_now(tmp_path: Path) -> None:
    store(tmp_path).seal(Counted.of([4], [refused(4, "found nothing [here/data.jsonl:5]")]), {})
    read, _ = store(tmp_path, "elsewhere/data.jsonl").read()
    assert read.refused[4].detail == "found nothing [elsewhere/data.jsonl:5]"


def test_a_name_that_is_no_utf8_is_kept_as_it_is(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9.jsonl")
    Store(folder=tmp_path, about={"file": name}, file=name).seal(counted(r0=5), {})
    assert len(store(tmp_path).read()[0]) == 1
    assert json.loads((tmp_path / ABOUT).read_bytes())["file"] == name


@pytest.mark.parametrize("umask", [0o077, 0o022, 0o002])
def test_who_may_read_what_is_kept_is_the_users_setting(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store(tmp_path).seal(counted(r0=5), {})
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o666 & ~umask}


@pytest.mark.parametrize("name", [LENGTHS, DROPPED, ABOUT])
@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "empty"])
def test_damage_is_not_believed(tmp_path: Path, name: str, damage: str) -> None:
    store(tmp_path).seal(counted(r0=5, r1=0, r2=7), {})
    path = tmp_path / name
    content = bytearray(path.read_bytes())
    flipped = content.copy()
    flipped[len(content) // 2] ^= 1
    if damage == "gone":
        path.unlink()
    else:
        path.write_bytes({"cut": content[:-9], "flipped": flipped, "empty": b""}[damage])
    if name == ABOUT and damage == "flipped":
        path.write_bytes(content.replace(b'"lengths.npy": "', b'"lengths.npy": "0'))
    assert len(store(tmp_path).read()[0]) == 0


def test_parts_are_joined_and_damaged_ones_left_out(tmp_path: Path) -> None:
    own = store(tmp_path)
    own.write_part(counted(r0=5, r1=0))
    own.write_part(counted(r2=6))
    own.write_part(counted(r3=8))
    broken = sorted((tmp_path / PARTS).glob("*.npz"))[1]
    content = bytearray(broken.read_bytes())
    content[len(content) // 2] ^= 1
    broken.write_bytes(content)
    (tmp_path / PARTS / ".half-written.npz-x").write_bytes(b"PK")
    found = own.read_parts()
    assert found.records["row"].tolist() == [0, 1, 3]
    own.seal(found, {})
    assert not (tmp_path / PARTS).exists()
    assert len(own.read()[0]) == 3


ROWS = st.dictionaries(st.integers(0, 20), st.integers(0, 3))


@given(st.lists(ROWS, max_size=4))
def test_merging_keeps_the_last_word_and_the_law(pieces: list[dict[int, int]]) -> None:
    merged = merge([counted(**{f"r{row}": own for row, own in piece.items()}) for piece in pieces])
    wanted = {row: own for piece in pieces for row, own in piece.items()}
    assert dict(zip(merged.records["row"].tolist(), merged.records["tokens"].tolist(), strict=True)) == wanted
    assert merged.sound
    _, found = merged.places(np.arange(21))
    assert np.flatnonzero(found).tolist() == sorted(wanted)


def test_where_lengths_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    data = tmp_path / "data" / "d.jsonl"
    data.parent.mkdir()
    assert cache_folders(data) == (data.parent / ".lading",)
    data.parent.chmod(0o555)
    assert cache_folders(data) == (data.parent / ".lading", tmp_path / "users" / "lading")
    data.parent.chmod(0o755)
    monkeypatch.setenv("LADING_CACHE", str(tmp_path / "mine"))
    assert cache_folders(data) == (tmp_path / "mine",)


def test_a_large_file_is_told_by_its_blocks_its_size_and_its_time(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"a" * 300_000)
    state = path.stat()
    first, content = (file_fingerprint(path, whole=1000, timed=timed) for timed in (True, False))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    assert file_fingerprint(path, whole=1000) != first
    assert file_fingerprint(path, whole=1000, timed=False) == content
    assert file_fingerprint(path) == file_fingerprint(path)
    path.write_bytes(b"a" * 150_000 + b"b" + b"a" * 149_999)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert file_fingerprint(path, whole=1000) != first
