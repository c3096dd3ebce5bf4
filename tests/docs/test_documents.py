"""The code in the documentation runs, and its links lead somewhere."""

import re
from pathlib import Path

import pytest

from lading.cli.app import COMMANDS, app, command
from tests.docs.own_data import lay_out
from tests.support.shared import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of one language, those inside list items dedented."""
    return [code for code, _ in blocks_and_outputs(page, language)]


def blocks_and_outputs(page: Path, language: str) -> list[tuple[str, str | None]]:
    """Each with what stands right below it as its output, where something does."""
    fence = rf"^( *)```{language}\n(.*?)^ *```\n(?:\n```text\n(.*?)^```)?"
    found = re.findall(fence, page.read_text(encoding="utf-8") + "\n", re.DOTALL | re.MULTILINE)
    return [
        ("\n".join(line.removeprefix(indent) for line in body.splitlines()), output or None)
        for indent, body, output in found
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=lambda page: page.name)
def test_python_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if page.name == "README.md":
        lay_out(tmp_path)
    namespace: dict[str, object] = {}
    for code, shown in blocks_and_outputs(page, "python"):
        exec(compile(code, str(page), "exec"), namespace)
        printed = capsys.readouterr().out.strip()
        if shown is not None:
            assert printed == shown.strip(), f"{page.name} shows another output than its code prints"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target, _, anchor in re.findall(r"\]\(([^)#]*)(#([^)]*))?\)", prose):
        if target.startswith("http"):
            continue
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
        if anchor:
            # MkDocs asks the same of its pages, but not of those that it does not build: the README for one.
            linked = page.parent / target if target else page
            assert anchor in anchors(linked), f"{page.name} links to {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def test_every_option_of_the_readme_exists() -> None:
    from typer.testing import CliRunner

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        line = next(line for line in text.splitlines() if line.startswith(f"lading {name}"))
        shown = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "200"}).output
        for option in re.findall(r"--[a-z-]+", line):
            assert option in shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_of_a_page_exists(page: Path) -> None:
    """Commands in shell blocks, and in text between back-ticks, with every option they name."""
    text = page.read_text(encoding="utf-8")
    lines = [line for block in blocks(page, "sh") for line in block.splitlines()]
    lines += re.findall(r"`(lading [a-z][^`\n]*)`", text)
    for line in lines:
        words = line.split("#")[0].split()
        if words[:1] != ["lading"] or words[1] not in COMMANDS:
            assert words[:1] != ["lading"] or words[1].isupper() or words[1:] == ["--version"], (
                f"{page.name}: no command {line!r}"
            )
            continue
        known = {name for own in command(words[1]).params for name in own.opts} | {"--help"}
        named = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", line.split("#")[0])
        assert set(named) <= known, f"{page.name}: {line!r} names {sorted(set(named) - known)}"


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/*.md")), ids=lambda page: page.name)
def test_every_page_begins_with_what_one_gets_and_shows_how(page: Path) -> None:
    """A heading, then words, then something to run, before the reader has to scroll."""
    text = page.read_text(encoding="utf-8")
    if "This page is being written." in text:
        pytest.skip("not written yet")
    assert re.match(r"# .+\n\n[A-Z`\[*]", text), f"{page.name} begins with something else than a sentence"
    first = re.search(r"^ *```(python|sh|yaml|json)", text, re.MULTILINE)
    assert first is not None, f"{page.name} shows no example"
    assert text[: first.start()].count("\n") < 40, f"{page.name} shows its first example too late"


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
