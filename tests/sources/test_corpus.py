import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lading.doctor import open_for_examination
from lading.errors import ConfigError, CorpusError, LadingError, SkipSample
from lading.sources import open_corpus
from lading.sources.corpus import choose
from lading.sources.meta import MOST_OFTEN


def write(path: Path, rows: int) -> None:
    path.write_text("".join(json.dumps({"n": n, "file": path.stem}) + "\n" for n in range(rows)))


def meta(folder: Path, entries: dict[str, object]) -> Path:
    path = folder / "meta.json"
    path.write_text(json.dumps(entries))
    return path


def test_sources_stand_one_after_the_other(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", 3)
    write(tmp_path / "empty.jsonl", 0)
    (tmp_path / "b.json").write_text(json.dumps([{"n": 0}, {"n": 1}]))
    entries: dict[str, object] = {name: {"file_name": f} for name, f in
                                  [("first", "a.jsonl"), ("none", "empty.jsonl"), ("second", "b.json")]}  # fmt: skip
    corpus = open_corpus(meta(tmp_path, entries))
    assert repr(corpus) == "Corpus(first: 3, none: 0, second: 2)"
    assert [corpus.row(i).value["n"] for i in range(5)] == [0, 1, 2, 0, 1]
    assert [corpus.key(i).source for i in range(5)] == ["first"] * 3 + ["second"] * 2
    assert corpus.key(4).where == f"{tmp_path / 'b.json'}[1]"
    with pytest.raises(IndexError):
        corpus.row(5)


def test_a_plain_file_is_a_corpus_with_media_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "plain.jsonl", 2)
    corpus = open_corpus(tmp_path / "plain.jsonl")
    assert corpus.config(0).media_dir == tmp_path
    assert corpus.key(1).source == "plain"


@given(st.integers(0, 50), st.floats(0, 4).map(lambda ratio: round(ratio, 2)))
def test_a_ratio_repeats_evenly(rows: int, ratio: float) -> None:
    chosen = choose(rows, ratio)
    numbers = list(range(rows)) if chosen is None else chosen.tolist()
    counts = Counter(numbers)
    assert (
        max((counts.get(row, 0) for row in range(rows)), default=0)
        - min((counts.get(row, 0) for row in range(rows)), default=0)
        <= 1
    )
    assert len(numbers) == round(rows * ratio)


def test_a_share_of_no_row_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n" * 4)
    for ratio, told in ((0.1, True), (0, False), (0.2, False)):
        caplog.clear()
        open_corpus(meta(tmp_path, {"a": {"file_name": "a.jsonl", "sample_ratio": ratio}}))
        assert ("a: a share of 0.1 of its 4 rows is none of them" in caplog.text) == told


@pytest.mark.parametrize(
    "share",
    [{"sample_ratio": 1e9}, {"sample_ratio": MOST_OFTEN + 1}, {"num_samples": 10**13}, {"num_samples": 10**400}],
)
def test_a_share_beyond_reason_is_refused_by_name(tmp_path: Path, share: dict[str, float]) -> None:
    write(tmp_path / "a.jsonl", 4)
    path = meta(tmp_path, {"a": {"file_name": "a.jsonl", **share}})
    for look in (open_corpus, open_for_examination):
        with pytest.raises(ConfigError, match="nothing was read") as caught:
            look(path)
        assert next(iter(share)) in str(caught.value)
    write(tmp_path / "a.jsonl", 4)
    assert len(open_corpus(meta(tmp_path, {"a": {"file_name": "a.jsonl", "sample_ratio": MOST_OFTEN}}))) == 4000


def test_a_ratio_is_the_same_in_every_run(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", 100)
    path = meta(tmp_path, {"a": {"file_name": "a.jsonl", "sample_ratio": 0.3}})
    first, second = open_corpus(path), open_corpus(path)
    numbers = [first.row(i).value["n"] for i in range(len(first))]
    assert numbers == [second.row(i).value["n"] for i in range(len(second))]
    assert len(set(numbers)) == 30


def test_named_data_sets_only(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", 3)
    write(tmp_path / "b.jsonl", 4)
    path = meta(tmp_path, {"a": {"file_name": "a.jsonl"}, "b": {"file_name": "b.jsonl"}})
    assert len(open_corpus(path, ["b"])) == 4
    with pytest.raises(ConfigError, match="data set 'c'"):
        open_corpus(path, ["c"])
    with pytest.raises(ConfigError, match="named twice"):
        open_corpus(path, ["a", "a"])


def test_every_mistake_in_a_meta_file_is_told_at_once(tmp_path: Path) -> None:
    entries = {
        "a": {"file_nam": "a.jsonl"},
        "b": {"file_name": "b.jsonl", "sample_ratio": -1, "tags": {"role": "x"}, "columns": {"image": "pic"}},
        "c": "c.jsonl",
        "d": {"file_name": "d.jsonl", "media_dir": 5, "sample_ratio": float("nan"), "columns": {"messages": 5}},
        "e": {"file_name": ""},
        "f": {"hf_hub_url": ""},
    }
    with pytest.raises(ConfigError) as caught:
        open_corpus(meta(tmp_path, dict(entries)))
    said = str(caught.value)
    for part in (
        "a: no file_name",
        "did you mean 'file_name'?",
        "sample_ratio -1",
        "tag 'role'",
        "column 'image'",
        "c: a str",
        "media_dir 5",
        "sample_ratio nan",
        "column 'messages' is 5",
        "e: an empty file_name",
        "f: an empty hf_hub_url",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("name", "text", "error", "said"),
    [
        ("x.json", "[1, 2", CorpusError, "x.json:1:6"),
        ("x.json", '"text"', CorpusError, "wanted an array of conversations"),
        ("x.json", "{}", ConfigError, "wanted"),
        ("x.txt", "hello", ConfigError, "wanted one ending in .jsonl or .json or .parquet"),
        ("x.json", b'["\xff"]', CorpusError, "not UTF-8"),
        ("x.json", '{"a": 1}\n{"a": 2}\n', CorpusError, "a name that ends in .jsonl"),
        ("x.json", '{"a": {"file_name": "b"}, "a": {"file_name": "c"}}', ConfigError, "found 'a' more than once"),
    ],
)
def test_files_that_are_no_corpus(
    tmp_path: Path, name: str, text: str | bytes, error: type[LadingError], said: str
) -> None:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(error) as caught:
        open_corpus(path)
    assert said in str(caught.value)


def test_an_element_that_is_no_object_is_one_bad_sample(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text('[{"a": 1}, 7]')
    corpus = open_corpus(tmp_path / "x.json")
    assert corpus.row(0).value == {"a": 1}
    with pytest.raises(SkipSample, match=r"x\.json\[1\]"):
        corpus.row(1)


def test_an_array_in_a_file_of_lines_is_told_where_it_belongs(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text(json.dumps([{"a": 1}], indent=1))
    with pytest.raises(SkipSample, match=r"a file whose name ends in \.json"):
        open_corpus(tmp_path / "x.jsonl").row(0)


def test_what_cannot_be_looked_at_is_told_by_name(tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    for path in (tmp_path / "loop.jsonl", meta(tmp_path, {"a": {"file_name": "loop.jsonl"}})):
        with pytest.raises(CorpusError, match=r"loop\.jsonl, which cannot be looked at \(Too many levels"):
            open_corpus(path)
