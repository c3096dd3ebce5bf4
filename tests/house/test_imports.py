"""What is loaded by whom: `import lading` needs numpy at most, and help waits for neither torch nor transformers."""

import subprocess
import sys

import pytest

CODE = """
import sys
before = set(sys.modules)  # what this environment loads into every process is not ours
{what}
new = sorted({{name.partition(".")[0] for name in set(sys.modules) - before}} - set(sys.stdlib_module_names))
print("LOADED", *new)
"""
COMMAND = """
sys.argv = ["lading", *{arguments!r}]
from lading.cli import main
try:
    main()
except SystemExit as end:
    assert end.code == 0, end.code
"""
MODELS = {"torch", "torchvision", "transformers", "tokenizers", "jinja2"}
FILES = {"datasets", "pyarrow", "av", "PIL", "simplejpeg", "soundfile", "soxr"}
"""Packages that are imported where they are used; typer brings what it draws a page with."""


def loaded(what: str) -> set[str]:
    """The packages that a piece of code loads, besides Python's own, in a process of its own."""
    code = CODE.format(what=what)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("LOADED")[2].split())


def test_importing_lading_needs_numpy_alone() -> None:
    assert "lading" in loaded("import lading") <= {"lading", "numpy"}


@pytest.mark.parametrize(
    "room", ["sources", "conversation", "plan", "plan.file", "report", "records", "ledger", "families", "cli"]
)
def test_planning_starts_fast(room: str) -> None:
    found = loaded(f"import lading.{room}")
    assert "lading" in found
    assert not found & (MODELS | FILES)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_what_shows_them(option: str) -> None:
    found = loaded(COMMAND.format(arguments=[option]))
    assert {"lading", "typer"} <= found
    assert not found & (MODELS | FILES | {"numpy"})


@pytest.mark.parametrize("name", ["demo", "count", "plan", "doctor", "inspect", "verify", "families"])
def test_the_help_of_a_command_waits_for_no_model(name: str) -> None:
    found = loaded(COMMAND.format(arguments=[name, "--help"]))
    assert {"lading", "typer"} <= found
    assert not found & (MODELS | FILES)
