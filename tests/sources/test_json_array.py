"""A large array is read element by element, and is what it is when it is parsed whole."""

import codecs
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lading.errors import CorpusError, SkipSample
from lading.sources import index, json_array, open_corpus
from lading.sources.json_array import JsonArrayFile

signs = st.text(st.sampled_from('[]{},:"\\ \n\té€😀\ud800a1.-'), max_size=8)
numbers = st.integers() | st.floats() | st.sampled_from([10**30, -0.0, 1e300])
values = st.recursive(
    st.none() | st.booleans() | numbers | signs,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(signs, inner, max_size=3),
    max_leaves=8,
)
layouts = st.fixed_dictionaries(
    {
        "indent": st.sampled_from([None, 0, 2, "\t"]),
        "ensure_ascii": st.booleans(),
        "separators": st.sampled_from([(",", ":"), (", ", ": "), (" ,\r\n ", " :\t")]),
    }
)


@pytest.fixture(autouse=True)
def nothing_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LADING_CACHE", raising=False)
    monkeypatch.setattr(json_array, "WHOLE_BELOW", 0)
    monkeypatch.setattr(index, "KEPT_FROM", 0)


def outcome(path: Path) -> Any:
    """All that a file gives, or how it is refused."""
    try:
        file = JsonArrayFile(path, cache=False)
    except CorpusError as error:
        return str(error)
    return [_row(file, number) for number in range(len(file))]


def _row(file: JsonArrayFile, number: int) -> str:
    try:
        return repr(file.read(number))
    except SkipSample as skip:
        return str(skip)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(rows=st.lists(values, max_size=6), layout=layouts, chunk=st.integers(1, 9), mark=st.booleans())
def test_elements_are_those_of_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Any], layout: dict[str, Any], chunk: int, mark: bool
) -> None:
    monkeypatch.setattr(json_array, "CHUNK", chunk)
    monkeypatch.setattr(json_array, "FLUSHED", 2)
    path = tmp_path / "d.json"
    text = json.dumps(rows, **layout).encode("utf-8", "surrogatepass")
    path.write_bytes(codecs.BOM_UTF8 * mark + b" \n" * mark + text + b"\n" * mark)
    file = JsonArrayFile(path, cache=False)
    assert not isinstance(file._elements, list)
    # `repr` tells 1 from True and knows that nan is nan.
    parsed = [json.loads(file._elements.text(number).rstrip(b" \t\r\n,")) for number in range(len(file))]
    assert repr(parsed) == repr(json.loads(text))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(rows=st.lists(values, max_size=4), layout=layouts, data=st.data())
def test_a_broken_file_is_refused_as_if_it_were_parsed_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: list[Any], layout: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(rows, **layout).encode("utf-8", "surrogatepass")
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 3)))
    path = tmp_path / "d.json"
    path.write_bytes(
        text[:start] + data.draw(st.sampled_from([b"", b"]", b",", b'"', b"\xff", b"7", b"}"])) + text[stop:]
    )
    monkeypatch.setattr(json_array, "CHUNK", 5)
    found = outcome(path)
    monkeypatch.setattr(json_array, "WHOLE_BELOW", 1 << 20)
    assert found == outcome(path)


NO_ARRAYS = ["[" * 100_000, f"[{'7' * 5000}]", "[1] 2", "[1,]", "[", "", "[{} {}]", '"text"', "{}", "7", "[1"]


@pytest.mark.parametrize("text", NO_ARRAYS)
def test_what_is_no_array_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    path = tmp_path / "d.json"
    path.write_text(text)
    found = outcome(path)
    assert isinstance(found, str)
    assert str(path) in found
    monkeypatch.setattr(json_array, "WHOLE_BELOW", 1 << 20)
    assert found == outcome(path)


def test_other_encodings_are_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('[{"a": "é"}]', encoding="utf-16")
    assert JsonArrayFile(path).read(0) == {"a": "é"}


def test_it_is_indexed_once_and_parsed_on_demand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "d.json"
    rows = [{"n": number} for number in range(1000)]
    path.write_text(json.dumps(rows, indent=1))
    assert len(open_corpus(path)) == 1000

    def no_scan(*_: object) -> None:
        raise AssertionError("scanned again")

    monkeypatch.setattr(json_array, "scan_elements", no_scan)
    monkeypatch.setattr(json_array, "load_json", no_scan)
    corpus = open_corpus(path)
    assert [corpus.row(number).value for number in range(1000)] == rows
    assert corpus.key(7).where == f"{path}[7]"
    pickled = pickle.dumps(corpus.sources[0].file)
    assert len(pickled) < 1000
    assert pickle.loads(pickled).read(999) == {"n": 999}


def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('[{"n": 1}, {"n": 2}]')
    file = JsonArrayFile(path)
    path.write_text('[{"n": 1}, {"n" 22}]')
    with pytest.raises(CorpusError, match=r"does not change while it is read \[.*d\.json\[1\]\]"):
        file.read(1)
