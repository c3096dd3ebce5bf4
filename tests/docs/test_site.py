"""The site: it builds without a warning, holds every page, and asks nobody else for anything."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import lading
from docs.hooks import api, commands, tables
from tests.support.shared import ROOT

pytestmark = pytest.mark.xdist_group("site")


def build(config: Path, target: Path) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("material", reason="the extra `docs` is not installed")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--config-file",
        str(config),
        "--site-dir",
        str(target),
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", target)
    assert done.returncode == 0, done.stderr
    return target


class Page(HTMLParser):
    """What a page is made of, as far as a browser would fetch it; and its anchors."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.classes: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self.anchors.add(own.get("id", ""))
        self.classes.update(own.get("class", "").split())
        if tag == "link" and own.get("rel") not in ("canonical", "prev", "next"):
            self.fetched.append(own["href"])
        elif tag != "link" and "src" in own:
            self.fetched.append(own["src"])


def test_every_page_is_there(site: Path) -> None:
    wanted = [path.relative_to(ROOT / "docs").with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]
    for page in wanted:
        name = page.with_name("index.html") if page.name == "README.html" else page
        assert (site / name).is_file(), page
    for made in ("command", "families", "lading", "vlm", "verify", "records", "errors"):
        assert (site / "reference" / f"{made}.html").is_file()
    assert not list(site.rglob("*.py")), "the scripts are no part of the site"


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Page(path)
        for address in page.fetched:
            assert not re.match(r"(https?:)?//", address), f"{path.name} fetches {address}"
            if path.name != "404.html":
                assert (path.parent / address.split("?")[0]).is_file(), (
                    f"{path.name} fetches {address}, which is not there"
                )
        # What the theme would fetch a script for.
        assert page.classes.isdisjoint({"mermaid", "arithmatex"}), path.name
    for style in site.rglob("*.css"):
        remote = re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//[^)\"']+", style.read_text(encoding="utf-8"))
        assert remote == [], style.name


def test_every_public_name_has_an_anchor(site: Path) -> None:
    anchors = Page(site / "reference" / "lading.html").anchors
    assert {f"lading.{name}" for name in lading.__all__} <= anchors
    assert {"lading.Loader.state_dict", "lading.toy.write_corpus", "lading.attention.use_varlen"} <= anchors
    assert "lading.errors.UnknownName" in Page(site / "reference" / "errors.html").anchors
    assert "lading.records.Finding" in Page(site / "reference" / "records.html").anchors
    assert "lading.vlm.datasets.make_meta_dataset" in Page(site / "reference" / "vlm.html").anchors


def test_the_reference_names_every_option_of_every_command(site: Path) -> None:
    from lading.cli.app import COMMANDS, command

    shown = (site / "reference" / "command.html").read_text(encoding="utf-8")
    for name in COMMANDS:
        assert f'id="lading-{name}"' in shown
        for parameter in command(name).params:
            for option in parameter.opts:
                assert f"<code>{option if option.startswith('-') else option.upper()}</code>" in shown


def test_the_example_of_the_families_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", tables.families_page(), re.DOTALL)
    exec(compile(code, "families", "exec"), {})
    assert capsys.readouterr().out == "Qwen3-VL\n"


def test_docstrings_become_markdown() -> None:
    drawn = "a     b\nc     d"
    example = ">>> 1 + 1\n2\n\n>>> 3\n3"
    indented = example.replace("\n>>>", "\n    >>>").replace("\n2", "\n    2").replace("\n3", "\n    3")
    made = api.markdown(f"First <image> line, `<video>`.\n\n    {indented}\n\n{drawn}\n")
    assert made.split("\n\n```") == [
        "First &lt;image> line, `<video>`.",
        f"pycon\n{example}\n```",
        f"text\n{drawn}\n```",
    ]


def test_signatures_and_fields_are_the_code_s_own() -> None:
    assert api.signature(lading.load_processor, "load_processor").startswith("load_processor(name: ")
    said = api.field_words(lading.LoaderConfig)
    assert said["too_long"].startswith("What becomes of a sample longer than `pack_size`")
    assert " at 0x" not in "".join(api.pages().values())


def test_what_is_said_of_a_command_is_its_own_help() -> None:
    page = commands.page()
    assert "| `--world-size` N | Ranks that train together. | `1` |" in page
    assert "| `META` |" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "text", "said"),
    [
        ("docs/flow.md", "\n[nowhere](nowhere.md)\n", "nowhere.md"),
        ("docs/flow.md", "\n[no anchor](resume.md#nothing-here)\n", "nothing-here"),
        ("docs/lost.md", "# A page that no menu names\n", "lost.md"),
    ],
)
def test_a_fault_fails_the_build(tmp_path: Path, place: str, text: str, said: str) -> None:
    import shutil

    shutil.copytree(ROOT / "docs", tmp_path / "docs")
    for name in ("mkdocs.yml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    page = tmp_path / place
    page.write_text((page.read_text(encoding="utf-8") if page.exists() else "") + text, encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode != 0
    assert said in done.stderr
