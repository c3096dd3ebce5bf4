"""`lading verify` as a person runs it, and over real processors where they are present."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lading import toy
from lading.cli.app import app
from lading.verify import verify
from tests.support.shared import real_processor, shared_data


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("corpus"), samples=10, faults=True)


def run(meta: Path, *options: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(
        app,
        ["verify", str(meta), "--processor", "toy:qwen2_5_vl", "--pack-size", "512", *options],
        env={"COLUMNS": "200"},
    )
    return done.exit_code, done.stdout, done.stderr


def test_json_for_programs(meta: Path) -> None:
    code, out, _ = run(meta, "--json")
    said = json.loads(out)
    assert code == 0
    assert said["holds"] is True
    assert (said["samples"], said["documents"], said["dropped"]) == (12, 10, 2)
    assert said["dropped_by_reason"] == {"missing_media": 1, "malformed_json": 1}
    assert all(said[f"{aspect}_equal"] is True for aspect in ("tokens", "labels", "positions", "pixels"))
    assert (said["leaking_documents"], said["lost"], said["not_run"]) == (0, 0, 0)
    assert 0 < said["max_abs_loss_diff"] <= said["tolerance"] == 1e-5
    assert (said["family"], said["model"], said["attention"]) == ("qwen2_5_vl", "small", "positions")
    assert said["differences"] == []


def test_a_table_for_a_person_and_an_exit_code_where_it_does_not_hold(meta: Path) -> None:
    """No two ways of computing round alike, so that a tolerance of nothing at all is not kept."""
    code, out, err = run(meta, "--tolerance", "0", "--attention", "mask")
    assert code == 1
    assert "Packed ≠ unpacked" in out
    assert "missing_media 1" in out
    assert ".jsonl:" in err
    assert ": loss: " in err


def test_mistakes_are_errors_of_ours(meta: Path) -> None:
    from lading.errors import LadingError

    for options in (["--attention", "flash"], ["--model", "/no/such/folder"], ["--family", "qwen"]):
        done = CliRunner().invoke(
            app, ["verify", str(meta), "--processor", "toy:qwen2_5_vl", "--pack-size", "512", *options]
        )
        assert isinstance(done.exception, LadingError), options


CASES = [
    ("mllm_demo", "qwen2_5_vl", True),
    ("mllm_demo", "qwen3_vl", True),
    ("mllm_demo", "gemma4", True),
    ("mllm_video_demo", "gemma4", False),
    ("mllm_audio_demo", "qwen3_omni", True),
    ("mllm_demo", "internvl3", True),
    ("mllm_demo", "smolvlm", True),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("data", "name", "runs"),
    [pytest.param(*case, marks=pytest.mark.xdist_group(f"real-media-{case[1]}")) for case in CASES],
)
def test_real_media_hold(data: str, name: str, runs: bool) -> None:
    path = shared_data(f"mllm_demo/{data}.json")
    found = verify(path, real_processor(name), pack_size=8192)
    assert found.holds, found.differences
    assert found.documents == len(json.loads(path.read_text()))
    assert found.losses == (found.documents if runs else 0)
    assert sum(found.not_run.values()) == (0 if runs else found.documents)


@pytest.mark.slow
@pytest.mark.xdist_group("shared-qwen2_5_vl")
def test_real_text_holds() -> None:
    found = verify(shared_data("alpaca_en_demo.json"), real_processor("qwen2_5_vl"), pack_size=1024, limit=12)
    assert found.holds, found.differences
    assert found.losses == found.documents == 12
    assert found.packs < 12
