"""The copy that `lading count --annotate` writes: the same samples with their counts, whole or not at all."""

import json
from pathlib import Path
from typing import Any

import pytest

from lading import toy
from lading.encode import Encoder
from lading.errors import ConfigError
from lading.lengths import count_lengths
from lading.lengths.annotate import write_annotated
from lading.loader import Samples
from lading.sources import open_corpus


def talk(place: int) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "?" * place}, {"role": "assistant", "content": "Yes."}]}


def opened(path: Path) -> Samples:
    return Samples(corpus=open_corpus(path), encoder=Encoder.of(toy.processor("qwen2_5_vl")))


def copied(path: Path, folder: Path) -> Path:
    samples = opened(path)
    return write_annotated(samples, count_lengths(samples), folder)


def write(folder: Path, sources: dict[str, list[str]], **options: Any) -> Path:
    """A meta file and its data files, by the names of the data sets."""
    for number, lines in enumerate(sources.values()):
        (folder / f"data-{number}.jsonl").write_text("\n".join(lines) + "\n")
    entries = {name: {"file_name": f"data-{number}.jsonl", **options} for number, name in enumerate(sources)}
    (folder / "corpus.json").write_text(json.dumps(entries))
    return folder / "corpus.json"


LINES = [json.dumps(talk(place)) for place in range(1, 41)]


@pytest.mark.parametrize(
    "share", [{}, {"sample_ratio": 0.5}, {"sample_ratio": 2.5}, {"sample_ratio": 0}, {"num_samples": 7}]
)
def test_a_share_is_the_same_share_though_rows_are_left_out(tmp_path: Path, share: dict[str, Any]) -> None:
    meta = write(tmp_path, {"talks": ["{oops", *LINES], "more": LINES}, **share)
    wanted = [own for own in count_lengths(opened(meta)).tokens.tolist() if own]
    assert count_lengths(opened(copied(meta, tmp_path / "copy"))).tokens.tolist() == wanted


def test_half_a_character_is_copied_as_it_is(tmp_path: Path) -> None:
    odd = {**talk(1), "note": "a\ud800b", "name": "caf\xe9"}
    meta = write(tmp_path, {"talks": [json.dumps(odd)]})
    (copy,) = (copied(meta, tmp_path / "copy").parent).glob("*.jsonl")
    row = json.loads(copy.read_bytes())
    assert {name: row[name] for name in odd} == odd
    assert "_text_tokens" in row


def test_names_of_data_sets_are_no_paths(tmp_path: Path) -> None:
    names = ["vqa/train", "vqa-train", "../up", "meta", "", "\ud800"]
    meta = write(tmp_path, {name: [json.dumps(talk(place))] for place, name in enumerate(names, start=1)})
    copy = copied(meta, tmp_path / "copy")
    assert list(json.loads(copy.read_bytes())) == names
    assert count_lengths(opened(copy)).tokens.tolist() == count_lengths(opened(meta)).tokens.tolist()
    assert len(list(copy.parent.glob("*.jsonl"))) == len(names)


def test_what_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    samples = opened(write(tmp_path, {"talks": LINES, "more": LINES}))
    table = count_lengths(samples)
    read = type(samples.corpus.sources[1].file).read

    def interrupted(self: Any, number: int) -> Any:
        if number == 9 and self.path.name == "data-1.jsonl":
            raise KeyboardInterrupt
        return read(self, number)

    monkeypatch.setattr(type(samples.corpus.sources[1].file), "read", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_annotated(samples, table, tmp_path / "copy")
    assert list((tmp_path / "copy").iterdir()) == []


def test_no_data_file_of_the_corpus_is_written_over(tmp_path: Path) -> None:
    meta = write(tmp_path, {"data-1": LINES[:1], "talks": LINES[1:2]})
    with pytest.raises(ConfigError, match=r"take the place of .*data-1\.jsonl; wanted a folder of its own"):
        copied(meta, tmp_path)
    assert (tmp_path / "data-1.jsonl").read_text() == LINES[1] + "\n"
