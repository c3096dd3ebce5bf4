"""Each planted fault is found where it is, under its own name; where nothing is wrong, nothing is found."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path

import pytest

from lading import toy
from lading.doctor import KINDS, examine
from lading.doctor.findings import Findings
from lading.doctor.opening import open_for_examination
from lading.doctor.rows import RowChecker
from lading.errors import ConfigError, CorpusError
from lading.loader import ProcessorFacts, read_processor
from lading.sources import open_corpus
from lading.workers.pool import ProcessPool
from tests.doctor.planted import EXACT, FAULTS, plant, write_clean_corpus
from tests.support.shared import real_processor, shared_data

SAMPLES = 2000
PACK = 4096
SECONDS = 20
"""What the whole corpus may take on two cores."""
pytestmark = pytest.mark.xdist_group("doctor")

BESIDES = {"impossible_shape": {"extreme_shape"}, "placeholder_in_text": {"template_marker"}}
"""What is true of a fault as well."""


def found_at(findings: Findings) -> dict[str, set[str]]:
    places: dict[str, set[str]] = {}
    for finding in findings.findings:
        places.setdefault(finding.where, set()).add(finding.kind)
    return places


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_clean_corpus(tmp_path_factory.mktemp("clean") / "corpus", samples=SAMPLES)


@pytest.fixture(scope="module")
def omni() -> ProcessorFacts:
    return read_processor(toy.processor("qwen3_omni"))


@pytest.fixture(scope="module")
def planted(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = shutil.copytree(clean.parent, tmp_path_factory.mktemp("planted") / "corpus")
    return folder / "meta.json", plant(folder / "meta.json", FAULTS | EXACT)


def in_time(meta: Path, facts: ProcessorFacts | None) -> Findings:
    """The findings. Where others use the same cores, a second try is allowed."""
    pack_size = None if facts is None else PACK
    findings = examine(meta, facts, pack_size=pack_size, workers=2)
    if findings.seconds >= SECONDS:
        findings = examine(meta, facts, pack_size=pack_size, workers=2)
    assert findings.seconds < SECONDS
    return findings


@pytest.mark.parametrize("exact", [False, True])
def test_nothing_is_found_in_a_clean_corpus(clean: Path, omni: ProcessorFacts, exact: bool) -> None:
    findings = in_time(clean, omni if exact else None)
    assert [str(finding) for finding in findings.findings] == []
    assert findings.samples == SAMPLES
    assert findings.media == SAMPLES // 2 + 2 * (SAMPLES // 100)


def test_every_planted_fault_is_found_by_name(planted: tuple[Path, dict[str, str]], omni: ProcessorFacts) -> None:
    meta, places = planted
    assert len(places) >= 25
    findings = in_time(meta, omni)
    wanted = {where: {kind} | BESIDES.get(kind, set()) for kind, where in places.items()}
    assert found_at(findings) == wanted
    assert findings.counts == Counter(kind for kinds in wanted.values() for kind in kinds)
    assert all(finding.severity == KINDS[finding.kind].severity for finding in findings.findings)


def test_without_a_processor_what_needs_none_is_found(planted: tuple[Path, dict[str, str]]) -> None:
    meta, places = planted
    found = found_at(examine(meta))
    assert {kind: found[places[kind]] for kind in FAULTS} == {kind: {kind} for kind in FAULTS}


def test_other_processes_find_the_same(planted: tuple[Path, dict[str, str]]) -> None:
    examined = open_for_examination(planted[0])
    rows = examined.rows
    look = RowChecker(rows, examined.layouts, None)
    chunks = [range(start, min(len(rows), start + 8)) for start in range(0, len(rows), 8)]
    with ProcessPool(look, workers=3) as pool:
        together = list(pool.map(chunks, len(chunks)))
        assert len(pool.processes()) == 3
    for one, other in zip(together, map(RowChecker(rows, examined.layouts, None), chunks), strict=True):
        assert (one.rows, one.problems, one.shown) == (other.rows, other.problems, other.shown)
        assert one.samples.tolist() == other.samples.tolist()
        assert one.media.tolist() == other.media.tolist()


def test_deep_looks_behind_headers(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path / "corpus", samples=20)
    assert not examine(meta, deep=True).findings
    clip, picture = tmp_path / "corpus/media/c0.mp4", tmp_path / "corpus/media/p0.png"
    for path, place in ((clip, clip.stat().st_size // 3), (picture, 200)):
        content = bytearray(path.read_bytes())
        content[place : place + 400] = bytes(400)
        path.write_bytes(bytes(content))
    # Only decoding shows what is wrong with the middle of a file.
    assert not examine(meta).findings
    found = examine(meta, deep=True).of_kind("undecodable_media")
    assert any("p0.png" in finding.detail for finding in found)


def test_files_as_a_whole(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path, samples=20)
    entries = json.loads(meta.read_text())
    (tmp_path / "nothing.jsonl").write_text("\n \n")
    (tmp_path / "nothing.json").write_text("")
    (tmp_path / "broken.json").write_text('[{"messages": [')
    for name in ("nothing.jsonl", "nothing.json", "broken.json", "gone.jsonl"):
        entries[name] = {"file_name": name}
    meta.write_text(json.dumps(entries))
    findings = examine(meta)
    kinds = {Path(finding.where).name: finding.kind for finding in findings.findings}
    assert kinds == {
        "nothing.jsonl": "empty_file",
        "nothing.json": "empty_file",
        "broken.json": "unreadable_file",
        "gone.jsonl": "missing_file",
    }
    assert findings.samples == 20
    with pytest.raises(CorpusError, match="no file"):
        examine(tmp_path / "no-meta.json")


@pytest.mark.parametrize(("text", "told"), [('{"messages": [', "malformed JSON"), ('{"a": 1}\n{"a": 2}\n', ".jsonl")])
def test_a_file_that_is_no_json_is_a_finding_also_when_it_is_the_only_one(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "talks.json"
    path.write_text(text)
    findings = examine(path)
    (finding,) = findings.findings
    assert (finding.kind, finding.source, findings.lost_sources) == ("unreadable_file", "talks", ("talks",))
    assert told in finding.detail


def test_samples_find_their_findings(tmp_path: Path) -> None:
    """By number, whatever share of a source is used, and though a row be used twice."""
    meta = write_clean_corpus(tmp_path, samples=40)
    places = plant(meta, {"empty_answer": FAULTS["empty_answer"], "unknown_role": FAULTS["unknown_role"]})
    for ratio in (1.0, 2.0, 0.5, 0.0):
        entries = json.loads(meta.read_text())
        entries["talks"]["sample_ratio"] = ratio
        meta.write_text(json.dumps(entries))
        corpus, findings = open_corpus(meta), examine(meta)
        # All rows are looked at: another share may be used tomorrow.
        assert {finding.where for finding in findings.findings} == set(places.values())
        used = [index for index in range(len(corpus)) if corpus.key(index).where in places.values()]
        by_sample = findings.by_sample(corpus)
        assert sorted(by_sample) == used
        assert all([own.key for own in by_sample[index]] == [corpus.key(index)] for index in used)
        assert not any(finding.of_file for finding in findings.findings)
        assert len(used) >= {1.0: 2, 2.0: 4, 0.5: 0, 0.0: 0}[ratio]
        for finding in findings.findings:
            keys = [corpus.key(index) for index in used if corpus.key(index).where == finding.where]
            assert finding.key == (keys[0] if keys else None)


def test_a_slow_clip_is_given_up(tmp_path: Path) -> None:
    meta = write_clean_corpus(tmp_path, samples=20)
    findings = examine(meta, media_seconds=1e-9)
    assert set(findings.counts) == {"decode_timeout"}
    assert {finding.key.source for finding in findings.findings if finding.key} == {"clips"}


def test_more_than_is_kept_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data.jsonl"
    data.write_text('{"broken\n' * 50)
    monkeypatch.setattr("lading.doctor.findings.KEPT", 7)
    findings = examine(data)
    assert findings.counts == {"malformed_json": 50}
    assert len(findings.findings) == 7
    assert findings.left_out("data").all()


def test_a_length_without_a_processor_is_refused(clean: Path) -> None:
    with pytest.raises(ConfigError, match="without a processor"):
        examine(clean, pack_size=512)


@pytest.mark.parametrize(
    ("data", "processor"),
    [
        *((name, None) for name in ("mllm_demo", "mllm_video_demo", "mllm_audio_demo", "mllm_video_audio_demo")),
        *(("mllm_demo", name) for name in ("qwen2_5_vl", "qwen3_vl", "internvl3")),
        ("mllm_video_demo", "qwen2_5_vl"),
        ("mllm_audio_demo", "qwen3_omni"),
        ("mllm_video_audio_demo", "qwen3_omni"),
    ],
)
def test_nothing_is_found_in_the_demo_data(data: str, processor: str | None) -> None:
    path = shared_data(f"mllm_demo/{data}.json")
    folder = None if processor is None else real_processor(processor)
    findings = examine(path, folder, pack_size=32_768 if folder else None, deep=folder is None)
    assert [str(finding) for finding in findings.findings] == []
    assert findings.samples == len(json.loads(path.read_text()))
