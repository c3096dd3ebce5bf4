"""One contract over all formats: the same conversations, the same records and tokens, however they are written."""

import json
import logging
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lading.encode import Encoder, TokenisedSample
from lading.errors import CorpusError, UnknownName
from lading.lengths import count_lengths
from lading.loader import ProcessorFacts, Samples, load_processor, read_processor
from lading.samples.layouts import source_layouts
from lading.sources import open_corpus
from tests.conversation.written import TALKS, WRITERS, messages_of


@pytest.fixture(scope="module")
def facts() -> ProcessorFacts:
    return read_processor(load_processor("toy:qwen2_5_vl"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("formats")
    Image.new("RGB", (56, 84), "red").save(folder / "ada.png")
    Image.new("RGB", (84, 56), "blue").save(folder / "bob.png")
    return folder


def written(folder: Path, name: str) -> tuple[Path, list[str]]:
    """A file of all talks that can be said in a format, and which those are."""
    rows = {talk: WRITERS[name][1](turns) for talk, turns in TALKS.items()}
    said = {talk: row for talk, row in rows.items() if row is not None}
    path = folder / f"{name.replace(' ', '_')}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in said.values()), encoding="utf-8")
    return path, list(said)


def tokenised(samples: Samples) -> list[TokenisedSample]:
    made = samples.tokenised(range(len(samples)))
    assert all(isinstance(own, TokenisedSample) for own in made), made
    return [own for own in made if isinstance(own, TokenisedSample)]


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_conversations_in_every_format(facts: ProcessorFacts, folder: Path, name: str) -> None:
    path, talks = written(folder, name)
    samples = Samples(corpus=open_corpus(path), encoder=Encoder(facts=facts))
    assert samples.layouts[0].format == WRITERS[name][0]
    for number, talk in enumerate(talks):
        assert samples.conversation(number).messages == messages_of(TALKS[talk], folder), talk
    plain, order = written(folder, "sharegpt")
    truth = dict(zip(order, tokenised(Samples(corpus=open_corpus(plain), encoder=Encoder(facts=facts))), strict=True))
    for own, talk in zip(tokenised(samples), talks, strict=True):
        assert np.array_equal(own.ids, truth[talk].ids)
        assert np.array_equal(own.labels, truth[talk].labels)
    assert len(talks) >= 3


@pytest.mark.parametrize("name", WRITERS)
def test_a_format_that_was_asked_for_is_not_looked_for(folder: Path, name: str) -> None:
    path, _ = written(folder, name)
    asked = open_corpus(path, format=WRITERS[name][0])
    assert [layout.format for layout in source_layouts(asked)] == [WRITERS[name][0]]


def test_what_is_recognised_is_said(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, _ = written(folder, "llava")
    with caplog.at_level(logging.INFO, logger="lading"):
        source_layouts(open_corpus(path))
    assert "llava: read as llava (messages with one `image` beside them), by 4 of the first 4 rows" in caplog.text
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="lading"):
        source_layouts(open_corpus(path, format="sharegpt"))
    assert "llava: read as sharegpt (messages with marks in their text), as was asked" in caplog.text


def test_two_that_fit_are_both_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Ho"}]
    (tmp_path / "both.json").write_text(json.dumps([{"messages": talk, "prompt": "Hi", "completion": "Ho"}]))
    (layout,) = source_layouts(open_corpus(tmp_path / "both.json"))
    assert layout.format == "sharegpt"
    assert "could be sharegpt as well as prompt_completion" in caplog.text


def test_answers_in_prompts_are_spoken_of(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, _ = written(folder, "prompt_completion")
    source_layouts(open_corpus(path))
    assert "what it says there is trained on, too" in caplog.text


def test_an_unknown_format_is_named_with_the_nearest(folder: Path, facts: ProcessorFacts) -> None:
    path, _ = written(folder, "llava")
    with pytest.raises(UnknownName, match="did you mean 'llava'"):
        Samples(corpus=open_corpus(path, format="lava"), encoder=Encoder(facts=facts))


def test_a_meta_file_says_the_format(folder: Path, facts: ProcessorFacts) -> None:
    written(folder, "llava")
    meta = folder / "meta.json"
    meta.write_text(json.dumps({"a": {"file_name": "llava.jsonl", "format": "sharegpt", "media_dir": "."}}))
    first = Samples(corpus=open_corpus(meta), encoder=Encoder(facts=facts)).conversation(0).messages[0]
    assert [part.text for part in first.parts[1:]] == ["\nWho is this?"]  # type: ignore[union-attr]
    asked = Samples(corpus=open_corpus(meta, format="llava"), encoder=Encoder(facts=facts)).conversation(0).messages[0]
    assert [part.text for part in asked.parts[1:]] == ["Who is this?"]  # type: ignore[union-attr]


def test_rows_that_cannot_be_read_are_looked_past(tmp_path: Path, facts: ProcessorFacts) -> None:
    good = json.dumps({"question": "Who?", "answer": "Ada."})
    (tmp_path / "d.jsonl").write_text("{broken\n" * 3 + good + "\n" + '{"text": "no"}\n')
    samples = Samples(corpus=open_corpus(tmp_path / "d.jsonl"), encoder=Encoder(facts=facts))
    assert samples.layouts[0].format == "question_answer"
    table = count_lengths(samples)
    assert [entry.reason for entry in table.dropped] == ["malformed_json"] * 3 + ["bad_row"]
    assert "found columns text; wanted text in column 'question'" in table.dropped[-1].detail
    (tmp_path / "broken.jsonl").write_text("{broken\n")
    assert (
        len(count_lengths(Samples(corpus=open_corpus(tmp_path / "broken.jsonl"), encoder=Encoder(facts=facts))).dropped)
        == 1
    )


def test_nothing_fits(tmp_path: Path, facts: ProcessorFacts) -> None:
    (tmp_path / "d.json").write_text(json.dumps([{"instruction": "Who?", "result": "Ada."}]))
    with pytest.raises(CorpusError) as caught:
        Samples(corpus=open_corpus(tmp_path / "d.json"), encoder=Encoder(facts=facts))
    said = str(caught.value)
    assert "found columns instruction, result; wanted one of sharegpt, llava" in said
    assert "nearest is alpaca, which lacks a column 'output'" in said
    assert "d.json" in said


def lines(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text", "before"),
    [("trl without parts", 20, "trl without parts"), ("llava", 25, "llava"), ("openai", 300, "sharegpt by role")],
)
def test_text_at_the_start_does_not_decide_for_the_pictures_behind_it(
    folder: Path, facts: ProcessorFacts, name: str, text: int, before: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted, write = WRITERS[name]
    texts = [WRITERS[before][1](TALKS["text alone"])] * text
    path = lines(folder / "mixed.jsonl", [*texts, *[write(TALKS["a picture"])] * 9])
    with caplog.at_level(logging.INFO, logger="lading"):
        samples = Samples(corpus=open_corpus(path), encoder=Encoder(facts=facts))
    assert samples.layouts[0].format == wanted
    assert "rows that were looked at" in caplog.text
    assert not count_lengths(samples).dropped


def test_rows_that_cannot_be_read_do_not_decide(folder: Path) -> None:
    path = folder / "torn.jsonl"
    path.write_text("{\n" * 30 + json.dumps(WRITERS["llava"][1](TALKS["a picture"])) + "\n", encoding="utf-8")
    assert source_layouts(open_corpus(path))[0].format == "llava"


def test_pictures_in_a_column_that_nobody_reads_are_spoken_of(
    folder: Path, facts: ProcessorFacts, caplog: pytest.LogCaptureFixture
) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    data = (folder / "ada.png").read_bytes()
    for name, stored in {"pairs": {"bytes": data, "path": None}, "bare": data, "lists": [data]}.items():
        row = {"question": "Who?", "answer": "Ada.", "picture": stored}
        parquet.write_table(pyarrow.Table.from_pylist([row]), folder / f"{name}.parquet")
        caplog.clear()
        for _ in range(2):
            source_layouts(open_corpus(folder / f"{name}.parquet"))
        assert caplog.text.count("column picture holds pictures that nobody reads") == 1, name
        assert "`columns: {images: picture}`" in caplog.text
        meta = folder / "meta.json"
        meta.write_text(json.dumps({name: {"file_name": f"{name}.parquet", "columns": {"images": "picture"}}}))
        caplog.clear()
        samples = Samples(corpus=open_corpus(meta), encoder=Encoder(facts=facts))
        assert "nobody reads" not in caplog.text
        assert len(samples.conversation(0).media) == 1
