from collections.abc import Iterator
from typing import Any

import pytest

from tests.report.opened import BROWSER


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as started:
        # A container's root may not use the sandbox; nothing but our own page is opened.
        opened = started.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()
