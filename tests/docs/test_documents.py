"""The code in the documentation runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.own_data import lay_out
from tests.support.shared import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of one language, those inside list items dedented."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return ["\n".join(line.removeprefix(indent) for line in body.splitlines()) for indent, body in found]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        lay_out(tmp_path)
    namespace: dict[str, object] = {}
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)
    if page.name == "README.md":
        printed = capsys.readouterr().out.strip()
        assert printed in page.read_text(encoding="utf-8"), "the README shows another ledger than its code prints"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\(([^)#]+)\)", prose):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_option_of_the_readme_exists() -> None:
    from typer.testing import CliRunner

    from lading.cli.app import app

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in ("count", "plan", "verify", "families", "demo"):
        line = next(line for line in text.splitlines() if line.startswith(f"lading {command}"))
        shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200"}).output
        for option in re.findall(r"--[a-z-]+", line):
            assert option in shown


def test_every_name_of_the_pages_is_mapped() -> None:
    from tests.vlm.pages import PAGES

    text = (ROOT / "docs" / "coming-from-automodel.md").read_text(encoding="utf-8")
    missing = [name for names in PAGES.values() for name in names if f"`{name}`" not in text]
    assert missing == []
    for place in re.findall(r"`((?:[a-z_]+/)+(?:[a-z_0-9]+\.py)?)`", text):
        assert (ROOT / "src" / "lading" / place).exists(), place


def test_the_readme_lists_every_family() -> None:
    from lading import families

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for family in families.all_families():
        assert f"`{family.processors[0]}`" in text, family.name
