"""Data sets as a whole: how each is opened and read, the same file under two names, and copies that read the same."""

from __future__ import annotations

import base64
import json
import logging
from pathlib import Path
from typing import Any

import pytest

import lading.doctor.rows as rows_module
from lading.doctor import examine, open_for_examination, write_clean
from lading.doctor.clean import check_copy
from lading.doctor.media import Verdict, examine_medium
from lading.doctor.rows import RowChecker
from lading.errors import CorpusError
from lading.records import MediaPart
from lading.samples.layouts import source_layouts
from lading.sources import open_corpus
from tests.doctor.planted import line, noise, picture_bytes, talk
from tests.doctor.test_clean import run

TOY = "toy:qwen2_5_vl"


def write(path: Path, *rows: Any) -> Path:
    path.write_bytes(b"".join(line(row) + b"\n" for row in rows))
    return path


def write_meta(path: Path, **entries: Any) -> Path:
    path.write_text(json.dumps(entries))
    return path


def llava(question: str, **columns: Any) -> dict[str, Any]:
    return {"conversations": [{"from": "human", "value": question}, {"from": "gpt", "value": "Ada."}], **columns}


def test_a_source_that_fits_no_format_does_not_end_the_examination(tmp_path: Path) -> None:
    """The loader refuses to start, and this is said; what is wrong with other sources is said, too."""
    strange = [{"label": number, "caption": "A cat."} for number in range(20)]
    write(tmp_path / "strange.jsonl", *strange, talk("Who?"))
    write(tmp_path / "talks.jsonl", talk("Who?"), {"messages": []})
    meta = write_meta(tmp_path / "m.json", a={"file_name": "strange.jsonl"}, b={"file_name": "talks.jsonl"})
    for processor in (None, TOY):
        found = examine(meta, processor)
        wanted = {"unknown_format": 1, "unknown_columns": 20, "empty_conversation": 1, "duplicate_sample": 1}
        assert found.counts == wanted
        (told,) = found.of_kind("unknown_format")
        assert (told.source, told.of_file) == ("a", True)
        assert "label, caption" in told.detail
    # Without them it starts.
    copy = write_clean(found, tmp_path / "copy")
    assert not examine(copy.meta, TOY).fails()


def test_formats_are_recognised_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "talks.jsonl", *(talk(f"Number {number}?") for number in range(200)))
    with caplog.at_level(logging.INFO, logger="lading.samples.layouts"):
        examine(path, TOY)
    (told,) = caplog.records
    assert told.getMessage().startswith("talks: read as ")


def test_the_command_is_told_how_to_read(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    noise(1).save(tmp_path / "images" / "a.png")
    write(tmp_path / "mine.jsonl", llava("<image>\nWho?", image="a.png"), llava("<image>\nWho?", image="gone.png"))
    entry = {"file_name": "mine.jsonl", "formatting": "sharegpt", "columns": {"images": "image"}}
    info = write_meta(tmp_path / "dataset_info.json", mine=entry, far={"hf_hub_url": "x/y"})
    assert run(info).returncode == 2
    where = ("--dataset", "mine", "--media-dir", tmp_path / "images")
    done = run(info, *where)
    assert done.returncode == 1
    assert "error missing_media × 1" in done.stdout
    assert done.stderr.startswith("mine: read as sharegpt (")
    done = run(info, *where, "--format", "llava", "--json", "--fix", tmp_path / "copy")
    told = json.loads(done.stdout)
    assert (done.stderr, told["formats"], told["errors"]) == ("", {"mine": "llava"}, 1)
    # The copy needs no more telling.
    assert json.loads(run(tmp_path / "copy" / "meta.json", "--json").stdout)["formats"] == {"mine": "llava"}
    assert run(tmp_path / "copy" / "meta.json").returncode == 0


def test_a_data_file_is_one_in_any_encoding(tmp_path: Path) -> None:
    path = tmp_path / "wide.json"
    path.write_bytes(json.dumps([talk("Who?"), talk("<image>?")]).encode("utf-16"))
    found = examine(path)
    assert (found.samples, found.counts) == (2, {"marks_without_media": 1})
    assert examine(write_clean(found, tmp_path / "copy").meta).samples == 1
    (tmp_path / "empty.json").write_bytes(b"")
    assert examine(tmp_path / "empty.json").counts == {"empty_file": 1}


def test_the_copy_is_read_as_the_original_was(tmp_path: Path) -> None:
    """The one row that showed the format is left out; those behind the first twenty are of it."""
    noise(1).save(tmp_path / "a.png")
    rows = [llava(f"Number {number}?") for number in range(30)]
    rows[19] = llava("<image>\nWho?", image="gone.png")
    path = write(tmp_path / "talks.jsonl", *rows, llava("<image>\nWho?", image="a.png"))
    copy = write_clean(examine(path), tmp_path / "copy")
    (before,), (after,) = source_layouts(open_corpus(path)), source_layouts(open_corpus(copy.meta))
    assert before.format == after.format == "llava"


def test_what_was_found_is_told_though_no_copy_can_be_written(tmp_path: Path) -> None:
    path = write(tmp_path / "bad.jsonl", talk("<image>?"))
    done = run(path, "--fix", tmp_path / "copy")
    assert done.returncode == 2
    assert "error marks_without_media × 1" in done.stdout
    assert "no row without a finding" in done.stderr
    done = run(path, "--json", "--fix", tmp_path / "copy")
    assert (json.loads(done.stdout)["errors"], json.loads(done.stdout)["fixed"]) == (1, None)


def test_no_copy_of_a_folder_is_tried(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    saved = tmp_path / "saved.json"
    datasets.Dataset.from_dict({"question": ["Who?"], "answer": [""]}).save_to_disk(str(saved))
    done = run(saved, "--fix", tmp_path / "copy")
    assert (done.returncode, done.stdout) == (2, "")
    assert "data set saved in" in done.stderr
    assert examine(saved).counts == {"empty_answer": 1}


def test_a_hub_data_set_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    found = examine(write_meta(tmp_path / "m.json", far={"hf_hub_url": "lading-nobody/nothing"}))
    (told,) = found.findings
    assert (told.kind, told.where, told.source) == ("unreadable_file", "lading-nobody/nothing", "far")
    assert "datasets cannot open" in told.detail


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("stored", [True, False])
def test_pictures_in_a_column_that_nobody_reads(tmp_path: Path, many: bool, stored: bool) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    content: Any = picture_bytes("png")
    content = {"bytes": content, "path": None} if stored else content
    rows = [{"picture": [content, content] if many else content, "question": "Who?", "answer": "Ada."}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "data.parquet")
    found = examine(tmp_path / "data.parquet")
    (told,) = found.findings
    assert told.kind == "unread_media_column"
    assert told.detail.startswith(f"column 'picture' with {len(picture_bytes('png')):,} bytes of png")


def test_bytes_that_are_no_media_are_let_alone(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"sum": b"\x01\x02", "about": {"path": "a/b", "bytes": None}, "question": "Who?", "answer": "Ada."}]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "data.parquet")
    (found,) = examine(tmp_path / "data.parquet").findings
    assert (found.kind, found.detail) == ("unread_key", "sum, about")


def test_an_empty_list_beside_a_picture(tmp_path: Path) -> None:
    """Either the picture is read, or it is said that it is not."""
    noise(1).save(tmp_path / "a.png")
    found = examine(write(tmp_path / "talks.jsonl", llava("Who?", images=[], image="a.png")))
    assert found.counts or found.media == 1


@pytest.fixture
def twice(tmp_path: Path) -> Path:
    """One file under two names, of which one does not find its pictures; and one used two and a half times."""
    noise(1).save(tmp_path / "a.png")
    write(tmp_path / "talks.jsonl", talk("<image>Who?", images=["a.png"]), talk("Where?", ""), talk("When?"))
    return write_meta(
        tmp_path / "m.json",
        one={"file_name": "talks.jsonl", "media_dir": "."},
        two={"file_name": "talks.jsonl", "media_dir": "nowhere", "sample_ratio": 2.5},
        three={"file_name": "talks.jsonl", "media_dir": ".", "sample_ratio": 0.0},
        gone={"file_name": "gone.jsonl"},
    )


def test_the_same_file_under_two_names(twice: Path, tmp_path: Path) -> None:
    found = examine(twice)
    details = [(told.source, told.detail) for told in found.of_kind("duplicate_sample")]
    assert len(details) == 5
    for source, detail in details:
        assert source != "one"
        assert detail.endswith(" of data set one")
    copy = write_clean(found, tmp_path / "copy")
    listed = [json.loads(text) for text in copy.left_out.read_text().splitlines()]
    assert [(own["source"], own["kind"]) for own in listed] == [("gone", "missing_file"), ("two", "missing_media")]
    assert str(Path("nowhere", "a.png")) in listed[1]["detail"]


def test_every_sample_of_a_row_has_its_findings(twice: Path) -> None:
    found = examine(twice)
    corpus = found.examined.corpus
    own = found.by_sample()
    for index in range(len(corpus)):
        number, row = corpus.locate(index)
        kinds = found.kinds_of(corpus.sources[number].config.name, row)
        assert [told.kind for told in own.get(index, [])] == kinds
        assert all(told.key == corpus.key(index) for told in own.get(index, []))
    assert sum(told.kind == "missing_media" for told_here in own.values() for told in told_here) >= 2
    unused = [told for told in found.findings if told.source == "three"]
    assert unused
    assert all(told.key is None and not told.of_file for told in unused)
    assert [told.kind for told in found.findings if told.of_file] == ["missing_file"]


def test_a_medium_in_a_row_is_looked_at_once_and_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = "data:image/png;base64," + base64.b64encode(picture_bytes("png")).decode()
    examined = open_for_examination(write(tmp_path / "talks.jsonl", talk("<image>Who?", images=[url])))
    seen: list[MediaPart] = []

    def counted(part: MediaPart, *, deep: bool = False) -> Verdict:
        seen.append(part)
        return examine_medium(part, deep=deep)

    monkeypatch.setattr(rows_module, "examine_medium", counted)
    look = RowChecker(examined.rows, examined.layouts, None)
    looked = look(range(1))
    assert (looked.shown, looked.problems, len(seen)) == (1, [], 1)
    assert not look._known


def test_a_file_that_cannot_be_looked_at(tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    with pytest.raises(CorpusError, match="which cannot be looked at"):
        open_for_examination(tmp_path / "loop.jsonl")
    (tmp_path / "meta.json").write_text('{"a": {"file_name": "loop.jsonl"}}')
    (told,) = open_for_examination(tmp_path / "meta.json").findings
    assert (told.kind, "cannot be looked at" in told.detail) == ("unreadable_file", True)
    good = write(tmp_path / "talks.jsonl", talk("Who?"))
    with pytest.raises(CorpusError, match="which cannot be looked at"):
        check_copy(open_for_examination(good), tmp_path / "loop.jsonl")
