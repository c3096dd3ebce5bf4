"""An index is made once, used again, and never believed against its file."""

import json
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lading.errors import CorpusError
from lading.sources import index, jsonl, open_corpus
from lading.sources.index import BytesFile, Positions
from lading.sources.jsonl import JsonlFile, scan_lines

pieces = st.lists(
    st.sampled_from([b"", b" ", b"\t", b"\r", b"\n", b"\r\n", b"{}", b'{"a": 1}', b' {"b": "\xc3\xa9 x"}', b" " * 70]),
    max_size=40,
)


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were scanned; small ones keep their index too."""
    seen: list[str] = []

    def scan(file: BytesFile, size: int) -> Iterator[tuple[Positions, Positions]]:
        seen.append(Path(str(file.name)).name)
        return scan_lines(file, size)

    monkeypatch.delenv("LADING_CACHE", raising=False)
    monkeypatch.setattr(index, "KEPT_FROM", 1)
    monkeypatch.setattr(jsonl, "scan_lines", scan)
    return seen


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data" / "d.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps({"n": n}) + "\n\n" * (n % 7 == 0) + "\n" for n in range(500)))
    return path


def numbers(file: JsonlFile) -> list[int]:
    return [file.read(row)["n"] for row in range(len(file))]


def kept(data: Path) -> Path:
    (place,) = (data.parent / ".lading").glob("*.rows")
    return place


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)
@given(pieces, st.integers(1, 9))
def test_lines_equal_a_plain_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: list[bytes], chunk: int
) -> None:
    monkeypatch.setattr(jsonl, "CHUNK", chunk)
    monkeypatch.setattr(jsonl, "LOOK_AHEAD", 3)
    path = tmp_path / "d.jsonl"
    path.write_bytes(b"".join(content))
    plain = enumerate(path.read_bytes().split(b"\n"), start=1)
    wanted = [(f"{path}:{number}", line.rstrip(b"\r")) for number, line in plain if line.strip(b" \t\r")]
    file = JsonlFile(path)
    found = [(file.where(row), file._rows.text(row).rstrip(b"\r\n")) for row in range(len(file))]
    assert found == wanted


def test_the_second_opening_scans_nothing(data: Path, scans: list[str]) -> None:
    first, second = JsonlFile(data), JsonlFile(data)
    assert numbers(first) == numbers(second) == list(range(500))
    assert scans == ["d.jsonl"]
    assert [first.where(row) for row in (0, 1, 499)] == [second.where(row) for row in (0, 1, 499)]


def _append(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"n": 500}\n')


def _replace(path: Path) -> None:
    """As many bytes, at the same time of change: only the content tells."""
    state = path.stat()
    text = path.read_text().splitlines(keepends=True)
    path.write_text("".join(reversed(text)))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def _blank_out(path: Path) -> None:
    """The same lines, but one row less."""
    state = path.stat()
    path.write_bytes(path.read_bytes().replace(b'{"n": 0}', b" " * 8))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def _touch(path: Path) -> None:
    state = path.stat()
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))


@pytest.mark.parametrize("change", [_append, _replace, _blank_out, _touch])
def test_a_stale_index_is_made_again(data: Path, scans: list[str], change: Callable[[Path], None]) -> None:
    assert len(JsonlFile(data)) == 500
    change(data)
    wanted = [json.loads(line)["n"] for line in data.read_text().splitlines() if line.strip()]
    assert numbers(JsonlFile(data)) == wanted
    assert numbers(JsonlFile(data)) == wanted
    assert len(scans) == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:20],
        lambda content: content[:-8],
        lambda content: content + bytes(8),
        lambda content: content[:-3],
        lambda content: bytes(16) + content[16:],
        lambda content: content[:16] + b"\xff" * 16 + content[32:],
        lambda content: content[:32] + b"\xff" * (len(content) - 32),
        lambda content: content[:32] + bytes(len(content) - 32),
    ],
)
def test_a_broken_index_is_made_again(data: Path, scans: list[str], damage: Callable[[bytes], bytes]) -> None:
    assert len(JsonlFile(data)) == 500
    whole = kept(data).read_bytes()
    kept(data).write_bytes(damage(whole))
    assert numbers(JsonlFile(data)) == list(range(500))
    assert kept(data).read_bytes() == whole
    assert len(scans) == 2


def test_one_wrong_entry_is_noticed_when_its_row_is_read(data: Path, scans: list[str]) -> None:
    assert len(JsonlFile(data)) == 500
    content = bytearray(kept(data).read_bytes())
    content[32 + 8 * 111] ^= 1
    kept(data).write_bytes(content)
    assert numbers(JsonlFile(data)) == list(range(500))
    assert len(scans) == 2


def test_a_file_that_changes_while_it_is_read_is_an_error(data: Path, scans: list[str]) -> None:
    file = JsonlFile(data)
    assert file.read(0) == {"n": 0}
    content = data.read_bytes()
    data.write_bytes(content.replace(b"\n", b" "))
    with pytest.raises(CorpusError, match="a file that does not change while it is read"):
        file.read(1)


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_a_folder_that_may_not_be_written_to(
    data: Path, scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    data.parent.chmod(0o555)
    try:
        assert numbers(JsonlFile(data)) == numbers(JsonlFile(data)) == list(range(500))
    finally:
        data.parent.chmod(0o755)
    assert not (data.parent / ".lading").exists()
    assert len(list((tmp_path / "users" / "lading").glob("d.jsonl-*.rows"))) == 1
    assert len(scans) == 1


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX")
def test_an_index_beside_data_that_is_read_only_now_is_used(
    data: Path, scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    assert numbers(JsonlFile(data)) == list(range(500))
    (data.parent / ".lading").chmod(0o555)
    try:
        assert numbers(JsonlFile(data)) == list(range(500))
    finally:
        (data.parent / ".lading").chmod(0o755)
    assert len(scans) == 1
    assert not (tmp_path / "users").exists()


def test_a_file_cut_while_it_is_read_is_an_error_and_no_signal(data: Path) -> None:
    """In another process: where it is not noticed, the kernel ends that one."""
    code = f"""
from pathlib import Path
from lading.errors import CorpusError
from lading.sources.jsonl import JsonlFile
file = JsonlFile(Path({str(data)!r}))
rows = len(file)
Path({str(data)!r}).write_text('{{"n": 0}}\\n')
try:
    file.read(rows - 1)
except CorpusError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("Traceback")) == (0, 0), done.stderr
    assert "found 1 rows where 500 were; wanted a file that does not change while it is read" in done.stdout


def test_where_nothing_can_be_kept_it_stays_in_memory(
    data: Path, scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("LADING_CACHE", str(tmp_path / "file" / "folder"))
    assert numbers(JsonlFile(data)) == list(range(500))
    assert "is not kept" in caplog.text


def test_files_of_one_name_do_not_meet_in_one_folder(
    data: Path, scans: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LADING_CACHE", str(tmp_path / "mine"))
    other = tmp_path / data.name
    other.write_text('{"n": 7}\n')
    for _ in range(2):
        assert numbers(JsonlFile(data)) == list(range(500))
        assert numbers(JsonlFile(other)) == [7]
    assert len(scans) == 2


def test_the_caller_may_name_a_folder_or_none(data: Path, scans: list[str], tmp_path: Path) -> None:
    assert len(open_corpus(data, cache=False)) == 500
    assert list(data.parent.iterdir()) == [data]
    assert len(open_corpus(data, cache=tmp_path / "named")) == 500
    assert list(data.parent.iterdir()) == [data]
    assert len(list((tmp_path / "named").iterdir())) == 1


def test_a_small_file_leaves_nothing_behind(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    assert len(JsonlFile(data)) == 500
    assert list(data.parent.iterdir()) == [data]


def _last(file: JsonlFile) -> tuple[int, bool]:
    """The last row, and whether the index behind it is a mapped file."""
    starts = file._rows.index.starts
    while isinstance(starts, np.ndarray) and not isinstance(starts, np.memmap):
        starts = starts.base
    return file.read(len(file) - 1)["n"], isinstance(starts, np.memmap)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_map_the_same_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps({"n": n, "text": "x" * 4000}) + "\n" for n in range(index.KEPT_FROM // 4000)))
    file = JsonlFile(path)
    rows = len(file)
    assert len(pickle.dumps(file)) < 1000
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map(_last, [file, file]) == [(rows - 1, True)] * 2
