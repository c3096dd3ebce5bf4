"""Makes the pictures of `lading inspect`, from a corpus made on the spot: `python docs/pictures/make.py`.

Needs the extra `dev` and a Chromium (`LADING_CHROMIUM` names one that is not on the path).
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, sync_playwright
from rich.console import Console
from rich.text import Text

from lading import Loader, report, toy

HERE = Path(__file__).parent
BROWSER = os.environ.get("LADING_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
COMMAND = "lading inspect corpus/meta.json --processor toy:qwen2_5_vl"
COLUMNS = 104
LARGEST = 300_000
SAMPLES = 400
"""And two that are faulty."""
LOST = 90
"""Rows of one source more, the pictures of which are not there."""
PRINTED = (166, 160, 283)
"""Samples of the terminal's picture."""


def main() -> None:
    """Make them all."""
    if BROWSER is None:
        sys.exit("no Chromium was found; LADING_CHROMIUM may name one")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # pictures show places as a person would write them
        os.environ["LADING_CACHE"] = str(Path(folder) / "lengths")
        meta = toy.write_corpus("corpus", samples=SAMPLES, faults=True)
        _lose_pictures(meta)
        loader = Loader(meta, "toy:qwen2_5_vl", pack_size=512, world_size=4, rank=0)
        page = Path(folder) / "report.html"
        books = {"lengths": loader.lengths, "plan": loader.plan, "ledger": loader.ledger}
        shown = report.gather(loader.samples, limit=SAMPLES + 2 + LOST, **books)
        report.write(page, stats=loader.stats, shown=shown, title="lading · meta.json", **books)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
            for name, (scheme, place, act) in PICTURES.items():
                _shoot(browser, f"{page.as_uri()}#/{place}", HERE / f"{name}.png", scheme, act)
            drawn = Path(folder) / "terminal.html"
            drawn.write_text(f'<body style="margin: 0">{_terminal(loader, shown)}', encoding="utf-8")
            _shoot(browser, drawn.as_uri(), HERE / "inspect-terminal.png", "dark", lambda page: None, "svg")
            browser.close()
    for path in HERE.glob("*.png"):
        assert path.stat().st_size < LARGEST, f"{path.name} has {path.stat().st_size:,} bytes"


def _lose_pictures(meta: Path) -> None:
    """One source more, so that there is something to find."""
    talk = [{"from": "human", "value": "<image>What is written here?"}, {"from": "gpt", "value": "Nothing."}]
    rows = (json.dumps({"conversations": talk, "images": [f"page-{number}.png"]}) for number in range(LOST))
    (meta.parent / "scans.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    sources = json.loads(meta.read_text(encoding="utf-8")) | {"scans": {"file_name": "scans.jsonl"}}
    meta.write_text(json.dumps(sources), encoding="utf-8")


PICTURES: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "inspect-sample": ("light", "samples/163", lambda page: page.hover(".token.run >> nth=1")),
    "inspect-sample-dark": ("dark", "samples/244", lambda page: page.hover(".token.run")),
    "inspect-packs": ("light", "packs", lambda page: page.select_option("#sort", "vision")),
    "inspect-plan": ("light", "plan", lambda page: None),
    "inspect-ledger": ("dark", "ledger", lambda page: page.click(".group summary >> nth=0")),
}
"""By name: light or dark, what is open, and what is done there."""


def _shoot(
    browser: Browser, address: str, path: Path, scheme: Any, act: Callable[[Any], None], only: str | None = None
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 720}, color_scheme=scheme, offline=True)
    page.goto(address)
    act(page)
    page.wait_for_timeout(200)
    (page.locator(only).first if only else page).screenshot(path=path)
    page.close()


def _terminal(loader: Loader, shown: report.Gathered) -> str:
    """What `--terminal` prints, as the drawing that rich makes of it."""
    with Path(os.devnull).open("w", encoding="utf-8") as nowhere:
        console = Console(width=COLUMNS, record=True, file=nowhere, force_terminal=True, color_system="truecolor")
        console.print(Text(f"$ {COMMAND} --terminal", style="bold"))
        some = replace(shown, samples=tuple(shown.samples[index] for index in PRINTED))
        for line in report.terminal(some, lengths=loader.lengths, ledger=loader.ledger):
            console.print(line)
        return console.export_svg(title="lading inspect --terminal")


if __name__ == "__main__":
    main()
