"""`lading inspect` as a person runs it."""

import json
import os
from pathlib import Path

import pytest

from lading import toy
from lading.cli.data import own_cores
from tests.cli.test_commands import lading
from tests.cli.test_speech import run


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("faulty"), samples=30, faults=True)


def test_a_page_and_a_summary(faulty: Path, tmp_path: Path) -> None:
    page = tmp_path / "new" / "report.html"
    options = ("--processor", "toy:qwen2_5_vl", "--pack-size", 256, "--world-size", 2, "--samples", 12)
    done = lading("inspect", faulty, *options, "--out", page, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["shown"], said["samples"], said["world_size"], said["dropped"]) == (12, 32, 2, 2)
    assert said["bytes"] == page.stat().st_size
    assert said["ledger"]["pending"] == 30
    assert "no-such-picture.png" in page.read_text(encoding="utf-8")


def test_the_terminal_writes_no_page(faulty: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = lading("inspect", faulty, "--processor", "toy:qwen2_5_vl", "--terminal", "--samples", 32)
    assert done.returncode == 0, done.stderr
    assert "<|image_pad|> ×" in done.stdout
    assert "missing_media" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_corpus_of_which_nothing_is_left_has_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("{\n{\n", encoding="utf-8")
    done = lading("inspect", tmp_path / "bad.jsonl", "--processor", "toy:qwen2_5_vl", "--out", tmp_path / "r.html")
    assert done.returncode == 1, done.stderr
    assert "malformed_json" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Nothing to train on" in done.stderr


def test_the_plan_that_is_shown_is_the_one_that_is_made(faulty: Path, tmp_path: Path) -> None:
    asked = ("--processor", "toy:qwen2_5_vl", "--pack-size", "256", "--world-size", "2", "--json")
    other = ("--seed", "7", "--epoch", "1", "--algorithm", "worst_fit", "--placing", "shuffled", "--placeholder-media")
    usual = json.loads(run("plan", faulty, *asked).stdout)
    made = json.loads(run("plan", faulty, *asked, *other).stdout)
    shown = json.loads(run("inspect", faulty, *asked, *other, "--out", tmp_path / "r.html").stdout)
    same = [name for name in made if name not in ("family", "formats")]
    assert {name: shown[name] for name in same} == {name: made[name] for name in same}
    assert {name: usual[name] for name in same} != {name: made[name] for name in same}


def test_mistakes_are_told_before_any_work(faulty: Path) -> None:
    refused = lading("inspect", faulty, "--processor", "toy:qwen2_5_vl", "--too-long", "clip")
    assert refused.returncode == 2
    assert "wanted one of drop, truncate" in " ".join(refused.stderr.split())
    assert "Traceback" not in refused.stderr


def test_what_the_doctor_finds_is_on_the_page_of_the_data_sets_asked_for(tmp_path: Path) -> None:
    meta = toy.write_corpus(tmp_path / "corpus", samples=30)
    doubled = meta.parent / "talks.jsonl"
    lines = doubled.read_text(encoding="utf-8").splitlines(keepends=True)
    doubled.write_text("".join([*lines, lines[0]]), encoding="utf-8")
    page = tmp_path / "r.html"
    options = ("--processor", "toy:qwen2_5_vl", "--dataset", "talks", "--doctor", "--out", page)
    done = lading("inspect", meta, *options)
    assert done.returncode == 0, done.stderr
    text = page.read_text(encoding="utf-8")
    assert "duplicate_sample" in text
    assert f"talks.jsonl:{len(lines) + 1}" in text
    printed = lading("inspect", meta, *options[:-2], "--terminal", "--samples", len(lines) + 1)
    assert "duplicate_sample: " in printed.stdout, printed.stderr
    assert "The doctor found duplicate_sample 1." in printed.stdout
    listed = json.loads(lading("inspect", meta, *options, "--json").stdout)
    assert listed["findings"] == {"duplicate_sample": 1}
    plain = lading("inspect", meta, *(option for option in options if option != "--doctor"))
    assert plain.returncode == 0, plain.stderr
    assert "duplicate_sample" not in page.read_text(encoding="utf-8")


def test_half_a_character_in_a_name_ends_no_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = ("\ud83d", "é", "😀")
    talk = [{"from": "human", "value": "<image>Who?"}, {"from": "gpt", "value": "Ada Ł."}]
    rows = [{"conversations": talk, "images": [f"{letter}.png"]} for letter in letters]
    path = tmp_path / "half.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    shown = lading("inspect", path, "--processor", "toy:qwen2_5_vl", "--terminal")
    assert "\\ud83d.png" in shown.stdout, shown.stderr
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    told = lading("doctor", path)
    assert (told.returncode, "\\ud83d.png" in told.stdout) == (1, True), told.stderr
    listed = json.loads(lading("doctor", path, "--json").stdout)
    details = [finding["detail"] for kind in listed["kinds"] for finding in kind["findings"]]
    assert all(any(f"{letter}.png" in detail for detail in details) for letter in letters)


def test_a_system_that_does_not_tell_ones_cores_has_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert own_cores() == (os.cpu_count() or 1)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert own_cores() == 1
