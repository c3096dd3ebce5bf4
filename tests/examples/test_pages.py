"""What the pages about trainers show is what the examples say."""

import re
from pathlib import Path

import pytest
import yaml

from tests.examples.running import EXAMPLES
from tests.support.shared import ROOT

PAGES = sorted((ROOT / "docs" / "trainers").glob("*.md"))
FILES = sorted(path for path in EXAMPLES.rglob("*") if path.suffix in (".py", ".yaml"))
SCRIPTS = [path for path in FILES if "__main__" in path.read_text(encoding="utf-8")]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_is_shown_stands_in_an_example(page: Path) -> None:
    everything = [path.read_text(encoding="utf-8") for path in FILES]
    for shown in blocks(page, "py"):
        assert any(shown in text for text in everything), shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_name_files_and_options_that_exist(page: Path) -> None:
    options = set(re.findall(r'"(--[a-z-]+)"', (EXAMPLES / "common.py").read_text(encoding="utf-8")))
    options |= {"--nproc-per-node", "--num_processes"}  # of torchrun, of accelerate
    config = yaml.safe_load((EXAMPLES / "nemo" / "packed.yaml").read_text(encoding="utf-8"))
    options |= {f"--{section}.{key}" for section, keys in config.items() for key in keys}
    for line in "".join(blocks(page, "sh")).splitlines():
        for name in re.findall(r"examples/\S+", line):
            assert (ROOT / name).is_file(), name
        assert set(re.findall(r"--[\w.-]+", line)) <= options, line


def test_every_example_has_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert len(SCRIPTS) == 8
    for script in SCRIPTS:
        assert str(script.relative_to(ROOT)) in text, script


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_examples_are_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 100
