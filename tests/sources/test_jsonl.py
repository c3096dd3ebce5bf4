import json
import pickle
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lading.errors import CorpusError, SkipSample
from lading.sources import jsonl
from lading.sources.jsonl import JsonlFile

rows = st.dictionaries(st.text(max_size=5), st.text(max_size=20) | st.integers(), max_size=3)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(st.lists(rows | st.none(), max_size=12), st.booleans(), st.sampled_from(["\n", "\r\n"]))
def test_rows_read_by_number_equal_rows_read_in_turn(
    tmp_path: Path, values: list[dict[str, object] | None], ends: bool, newline: str
) -> None:
    """`None` stands for a blank line, which is no row but counts as a line."""
    lines = [" " * 12 if value is None else json.dumps(value, ensure_ascii=False) for value in values]
    path = tmp_path / "data.jsonl"
    path.write_bytes((newline.join(lines) + (newline if ends else "")).encode())
    file = JsonlFile(path)
    wanted = [(number, value) for number, value in enumerate(values, start=1) if value is not None]
    assert len(file) == len(wanted)
    assert [file.read(place) for place in range(len(file))] == [value for _, value in wanted]
    assert [file.where(place) for place in range(len(file))] == [f"{path}:{number}" for number, _ in wanted]


def test_chunks_do_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps({"n": n}) + "\n" for n in range(1000)))
    monkeypatch.setattr(jsonl, "CHUNK", 7)
    file = JsonlFile(path)
    assert len(file) == 1000
    assert file.read(999) == {"n": 999}


def test_a_broken_line_names_file_line_column_and_text(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"a": 1}\n\n{"a": "' + "x" * 500 + '" oops}\n')
    file = JsonlFile(path)
    with pytest.raises(SkipSample) as caught:
        file.read(1)
    assert caught.value.reason == "malformed_json"
    assert caught.value.where == f"{path}:3:510"
    assert "oops" in str(caught.value)
    assert len(str(caught.value)) < 300 + len(str(path))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"[1, 2]\n", "bad_row"),
        (b'{"a": ' + b"7" * 5000 + b"}\n", "bad_row"),
        (b'{"a": "\xff"}\n', "malformed_json"),
        (b"[" * 100_000 + b"\n", "malformed_json"),
    ],
)
def test_other_bad_lines_are_named_too(tmp_path: Path, text: bytes, reason: str) -> None:
    path = tmp_path / "data.jsonl"
    path.write_bytes(text)
    with pytest.raises(SkipSample) as caught:
        JsonlFile(path).read(0)
    assert caught.value.reason == reason
    assert str(path) in caught.value.where


def test_workers_get_the_path_alone(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.write_text('{"a": 1}\n' * 5000)
    file = JsonlFile(path)
    assert len(file) == 5000
    pickled = pickle.dumps(file)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).read(4999) == {"a": 1}


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "data.jsonl"
    path.touch()
    assert len(JsonlFile(path)) == 0


def test_a_missing_file_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="no file"):
        JsonlFile(tmp_path / "gone.jsonl")
