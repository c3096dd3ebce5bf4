"""A report in a real browser, and everything that it did there."""

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lading import Loader, report
from lading.records import Finding

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
BROWSER = os.environ.get("LADING_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
IN_A_BROWSER = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed (LADING_CHROMIUM names one)"),
    pytest.mark.xdist_group("browser"),
]


@dataclass
class Opened:
    """A page, and everything it did that it must not."""

    page: Any
    loader: Any
    """Whose report it is; none where it was made of a table alone."""
    path: Path
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


def open_page(browser: Any, loader: Loader | None, path: Path, **options: Any) -> Opened:
    page = browser.new_page(offline=True, **{"viewport": {"width": 1280, "height": 800}} | options)
    opened = Opened(page=page, loader=loader, path=path)
    page.on("console", lambda said: opened.complaints.append(said.text))
    page.on("pageerror", lambda error: opened.complaints.append(str(error)))
    page.on("dialog", lambda dialog: opened.complaints.append(dialog.message))
    page.on("request", lambda request: opened.requests.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", timeout=10_000)
    return opened


def write(loader: Loader, path: Path, *, limit: int = 200, findings: tuple[Finding, ...] = ()) -> Path:
    books = {"lengths": loader.lengths, "plan": loader.plan, "ledger": loader.ledger, "findings": findings}
    report.write(path, stats=loader.stats, shown=report.gather(loader.samples, limit=limit, **books), **books)
    return path
