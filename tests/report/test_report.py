from html.parser import HTMLParser
from pathlib import Path

from lading import Loader, report


class Checker(HTMLParser):
    """Collects what a page would fetch, and what it says."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.fetched += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_one_file_that_fetches_nothing(tmp_path: Path) -> None:
    from lading import toy

    loader = Loader(toy.write_corpus(tmp_path / "c", samples=30, faults=True), "toy:qwen2_5_vl", pack_size=256)
    path = tmp_path / "report.html"
    report.write(
        path, stats=loader.stats, lengths=loader.lengths, plan=loader.plan, ledger=loader.ledger, losses=[3.0, 2.0, 1.0]
    )
    page = Checker()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.fetched == []
    said = " ".join(page.text)
    assert "no-such-picture.png" in said
    assert f"{loader.stats.fill:.4f}" in said


def test_an_empty_plan_has_a_page_too(tmp_path: Path) -> None:
    from lading.ledger import Ledger
    from lading.plan import make_plan, plan_stats
    from tests.plan.test_plan import table

    nothing = table([])
    plan = make_plan(nothing, pack_size=256)
    stats = plan_stats(plan, nothing)
    report.write(str(tmp_path / "r.html"), stats=stats, lengths=nothing, plan=plan, ledger=Ledger.open(nothing))
    assert "nothing to show" in (tmp_path / "r.html").read_text()
