"""The command as a person runs it: real processes, real files."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lading import toy
from lading.plan.file import load_plan


def lading(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lading.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return toy.write_corpus(tmp_path_factory.mktemp("faulty"), samples=30, faults=True)


def test_plan_as_json_and_as_a_file(faulty: Path, tmp_path: Path) -> None:
    done = lading(
        "plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", 256, "--world-size", 2, "--json",
        "--out", tmp_path / "my.plan", "--ledger", tmp_path / "ledger.json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["samples"], said["packed"], said["dropped"]) == (32, 30, 2)
    assert said["dropped_by_reason"] == {"missing_media": 1, "malformed_json": 1}
    assert said["pack_size"] == 256
    assert said["packs"] >= said["lower_bound"]
    assert said["fill"] == pytest.approx(said["tokens"] / (said["packs"] * 256))
    plan = load_plan(tmp_path / "my.plan")
    assert (len(plan), plan.world_size) == (said["packs"], 2)
    assert len(json.loads((tmp_path / "ledger.json").read_text())["entries"]) == 2


def test_plan_for_a_person(faulty: Path) -> None:
    done = lading("plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", 256)
    assert done.returncode == 0, done.stderr
    assert "straggler factor" in done.stdout
    assert "no-such-picture.png" in done.stderr.replace("\n", "")


def test_plan_says_what_was_truncated(faulty: Path, tmp_path: Path) -> None:
    command = ("plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", 80, "--too-long", "truncate")
    done = lading(*command, "--json", "--ledger", tmp_path / "ledger.json")
    assert done.returncode == 0, done.stderr
    said, saved = json.loads(done.stdout), json.loads((tmp_path / "ledger.json").read_text())
    assert 0 < said["truncated"] == saved["total"]["truncated"] == len(saved["truncated"])
    assert said["samples"] == said["packed"] + said["dropped"]
    shown = lading(*command)
    assert f"{said['truncated']} (by {said['tokens_cut']:,} tokens)" in shown.stdout
    refused = lading(*command[:-1], "clip")
    assert refused.returncode == 2
    assert "wanted one of drop, truncate" in " ".join(refused.stderr.split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["plan", "gone.jsonl", "--processor", "toy:qwen2_5_vl", "--pack-size", "64"],
            "gone.jsonl; wanted a JSONL file",
        ),
        (["plan", "META", "--processor", "toy:quen", "--pack-size", "64"], "toy 'quen'"),
        (["plan", "META", "--processor", "toy:qwen2_5_vl", "--pack-size", "0", "--seed", "-1"], "seed -1"),
        (["plan", "META", "--processor", "toy:qwen2_5_vl", "--pack-size", "64", "--out", "."], "is a directory"),
        (["plan", "META", "--processor", "toy:qwen2_5_vl", "--pack-size", "64", "--strict"], "no-such-picture.png"),
        (["plan", "META", "--procesor", "x"], "No such option"),
        (["plan", "META", "--processor", "toy:qwen2_5_vl", "--pack-size", "64", "--family", "qwen"], "family 'qwen'"),
    ],
)
def test_mistakes_are_one_line_and_no_stack_trace(faulty: Path, arguments: list[str], said: str) -> None:
    done = lading(*[str(faulty) if argument == "META" else argument for argument in arguments])
    assert done.returncode == 2
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_nothing_to_train_on_is_no_success(faulty: Path) -> None:
    done = lading("plan", faulty, "--processor", "toy:qwen2_5_vl", "--pack-size", 3, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["packs"] == 0
    assert "Nothing to train on" in done.stderr


def test_families() -> None:
    done = lading("families", "--json")
    assert "qwen2_5_vl" in json.loads(done.stdout)["families"]
    assert "Qwen2.5-VL" in lading("families").stdout


@pytest.mark.slow
def test_the_demo_learns_and_accounts_for_everything(tmp_path: Path) -> None:
    done = lading("demo", "--out", tmp_path / "demo", "--samples", 60, "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["loss_last"] < 0.6 * said["loss_first"]
    assert said["ledger"]["input"] == 62
    assert said["ledger"]["trained"] == 60
    assert said["ledger"]["pending"] == 0
    for name in ("corpus", "ledger.json", "losses.json", "plan.lading", "report.html"):
        assert (tmp_path / "demo" / name).exists()


@pytest.mark.parametrize("command", ["inspect", "plan"])
def test_what_cannot_be_written_is_said_in_a_line_and_leaves_nothing(tmp_path: Path, command: str) -> None:
    resource = pytest.importorskip("resource", reason="only Unix limits the size of files")
    meta, out = toy.write_corpus(tmp_path / "corpus", samples=400 if command == "plan" else 20), tmp_path / "written"
    limit = 4_000
    done = subprocess.run(
        [sys.executable, "-m", "lading.cli", command, meta, "--processor", "toy:qwen2_5_vl", "--pack-size", "64",
         "--out", out],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]
