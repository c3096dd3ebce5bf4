"""A corpus of many files has room for all of them, or says that it has none."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lading.errors import CorpusError
from lading.sources import open_corpus

pytest.importorskip("resource", reason="only Unix limits open files")

SOURCES = 80

TRAIN = """
import resource, sys
from lading.sources import files
files.FOR_ALL_ELSE = 200
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[3])))
from lading import Loader
from lading.errors import ConfigError
try:
    loader = Loader(sys.argv[1], "toy:qwen2_5_vl", pack_size=64, num_workers=1)
    print(sum(1 for _ in loader), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
except ConfigError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def meta(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("many")
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "Ada."}]
    for number in range(SOURCES):
        (folder / f"{number}.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    path = folder / "meta.json"
    path.write_text(json.dumps({str(number): {"file_name": f"{number}.jsonl"} for number in range(SOURCES)}))
    return path


def trained(meta: Path, soft: int, hard: int) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TRAIN, str(meta), str(soft), str(hard)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_soft_limit_is_raised_as_far_as_needed(meta: Path) -> None:
    packs, soft = trained(meta, 100, 1000).split()
    assert int(packs) > 0
    assert int(soft) == 200 + SOURCES
    assert trained(meta, 100, 240).split()[1] == "240", "or as far as it may be"
    assert trained(meta, 500, 1000).split()[1] == "500", "it is left alone where it is enough"


def test_a_hard_limit_that_is_too_low_is_said(meta: Path) -> None:
    said = trained(meta, 100, 120)
    assert f"found a limit of 120 open files (ulimit -Hn); wanted {64 + SOURCES}" in said


def test_a_name_that_no_file_can_have_is_a_file_that_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_text(json.dumps({"a": {"file_name": "a\0b.jsonl"}}))
    with pytest.raises(CorpusError, match="no file"):
        open_corpus(tmp_path / "meta.json")
