"""What the parts of the report show, in a real browser: groups, colours, orders, and one column where it is narrow."""

import json
import re
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lading import Loader, report, toy
from lading.ledger import Ledger
from lading.plan import make_plan, plan_stats
from lading.records import Finding, LengthTable
from tests.report.opened import IN_A_BROWSER, Opened, open_page, write

pytestmark = IN_A_BROWSER

PARTS = ("samples", "packs", "plan", "ledger")
COSTS = ("language", "attention", "vision")
GONE = 612
"""Rows of the source `web` whose picture is missing."""


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """Pictures, clips and texts of many lengths, and two sources of which most is left out."""
    folder = tmp_path_factory.mktemp("sources")
    meta = toy.write_corpus(folder, samples=60)
    sources = json.loads(meta.read_text(encoding="utf-8"))
    for name, rows, gone in (("web", 700, GONE), ("charts-of-a-long-name", 90, 30)):
        with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number in range(rows):
                mark = {"images": [f"gone-{number}.png"]} if number < gone else {}
                talk = [
                    {"from": "human", "value": f"{'<image>' if mark else ''}Tell me {number}"},
                    {"from": "gpt" if number % 40 else "narrator", "value": "so " * (5 + number * 7 % 150)},
                ]
                file.write(json.dumps({"conversations": talk, **mark}) + "\n")
        sources[name] = {"file_name": f"{name}.jsonl"}
    meta.write_text(json.dumps(sources), encoding="utf-8")
    loader = Loader(meta, "toy:qwen2_5_vl", pack_size=512, world_size=2, rank=0)
    found = [
        Finding(kind="duplicate_sample", severity="warning", where=key.where, detail="said before", key=key)
        for key in map(loader.samples.corpus.key, range(5))
    ]
    path = write(loader, tmp_path_factory.mktemp("page") / "report.html", findings=tuple(found))
    return open_page(browser, loader, path)


@pytest.fixture
def page(opened: Opened) -> Any:
    """The page as it was opened."""
    return go(opened, "samples")


def go(opened: Opened, part: str, **size: int) -> Any:
    opened.page.set_viewport_size({"width": 1280, "height": 800} | size)
    opened.page.goto("about:blank")
    opened.page.goto(f"{opened.path.as_uri()}#/{part}")
    opened.page.wait_for_selector("html[data-ready]")
    return opened.page


def of_table(browser: Any, path: Path, lengths: LengthTable, *, pack_size: int, world_size: int = 1) -> Opened:
    """The report of a table of lengths, without samples."""
    plan = make_plan(lengths, pack_size=pack_size, world_size=world_size)
    stats = plan_stats(plan, lengths)
    report.write(path, stats=stats, lengths=lengths, plan=plan, ledger=Ledger.open(lengths))
    return open_page(browser, None, path)


def numbers(page: Any) -> list[int]:
    rows = page.eval_on_selector_all(".pack-row", "all => all.map(row => Number(row.dataset.number))")
    assert len(rows) > 8
    return [int(row) for row in rows]


def test_like_findings_are_one_line_that_opens(opened: Opened) -> None:
    page = go(opened, "ledger")
    entries = opened.loader.ledger.entries()
    wanted = Counter((entry["reason"], entry["source"]) for entry in entries) | {("duplicate_sample", "shapes"): 5}
    groups = page.eval_on_selector_all(
        ".group", "all => all.map(own => [own.dataset.kind, own.dataset.source, own.querySelector('b').textContent])"
    )
    assert {(kind, source): int(count) for kind, source, count in groups} == wanted
    assert len(groups) == len(wanted) < 10 < len(entries)
    assert groups[0] == ["missing_media", "web", str(wanted["missing_media", "web"])], "what is most comes first"
    assert groups[-1][0] == "duplicate_sample", "what costs no sample comes last"
    assert page.locator(".place").count() == 0
    largest = page.locator(".group >> nth=0")
    largest.locator("summary").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".place")
    for shown in (50, 100, 150, 200):
        assert largest.locator(".place").count() == shown
        if shown < 200:
            largest.locator("button:has-text('show more')").click()
    assert not largest.locator("button:has-text('show more')").is_visible()
    left = wanted["missing_media", "web"] - 200
    assert f"… and {left} more, not in this page" in largest.inner_text()
    assert opened.complaints == []


def test_what_was_found_can_be_searched(opened: Opened) -> None:
    page = go(opened, "ledger")
    groups = page.locator(".group").count()
    page.keyboard.press("/")
    page.keyboard.type("GONE-17.png")
    assert page.locator(".group").count() == 2
    assert "1 of 200 named match" in page.inner_text(".group[data-source=web]")
    assert "not named in this page, and not searched" in page.inner_text("#found-count")
    page.click(".group[data-source=web] summary")
    page.wait_for_selector(".place")
    assert page.locator(".place").all_inner_texts()[0].startswith("web.jsonl:18")
    page.fill("#found-search", "charts-of")
    kinds = page.eval_on_selector_all(".group", "all => all.map(own => own.dataset.source)")
    assert set(kinds) == {"charts-of-a-long-name"}
    page.fill("#found-search", "nothing is like this")
    assert page.locator(".group").count() == 0
    page.fill("#found-search", "")
    assert page.locator(".group").count() == groups


def test_a_group_leads_to_its_samples(opened: Opened) -> None:
    page = go(opened, "ledger")
    page.click(".group[data-kind=missing_media][data-source=charts-of-a-long-name] summary")
    page.click("button:has-text('among the samples')")
    assert page.is_visible("#samples")
    rows = page.locator(".sample-row .where").all_inner_texts()
    assert rows
    assert {row.split(":")[0] for row in rows} == {"charts-of-a-long-name.jsonl"}
    assert all("missing_media" in row for row in page.locator(".sample-row .says").all_inner_texts())


@pytest.mark.parametrize("order", ["fill", *COSTS])
def test_packs_are_sorted_by(opened: Opened, order: str) -> None:
    page, plan = go(opened, "packs"), opened.loader.plan
    values = plan.tokens if order == "fill" else -plan.costs[:, COSTS.index(order)]
    shown = np.array([float(f"{value:.4g}") for value in values])
    assert len(set(shown.tolist())) > 5
    page.select_option("#sort", order)
    rows = numbers(page)
    assert shown[rows].tolist() == sorted(shown.tolist())[: len(rows)]
    assert page.inner_text("#pack .name") == f"pack {rows[0]}", "the first is opened"
    page.click("#reverse")
    rows = numbers(page)
    assert shown[rows].tolist() == sorted(shown.tolist(), reverse=True)[: len(rows)]


def test_packs_are_sorted_by_their_main_source_number_and_training(opened: Opened) -> None:
    page, loader = go(opened, "packs"), opened.loader
    assert numbers(page)[0] == loader.plan.order[0, 0]
    page.select_option("#sort", "number")
    rows = numbers(page)
    assert rows == list(range(len(rows)))

    def main(number: int) -> int:
        members = loader.plan.pack(number)
        return int(np.bincount(loader.lengths.source[members], weights=loader.lengths.tokens[members]).argmax())

    page.select_option("#sort", "source")
    rows = numbers(page)
    assert [main(row) for row in rows] == sorted(map(main, range(len(loader.plan))))[: len(rows)]


def test_packs_are_sorted_by_keys_alone(opened: Opened) -> None:
    page = go(opened, "packs")
    page.focus("#sort")
    page.keyboard.press("ArrowDown")
    assert page.input_value("#sort") == "fill"
    emptiest = numbers(page)[0]
    assert opened.loader.plan.tokens[emptiest] == opened.loader.plan.tokens.min()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert page.get_attribute("#reverse", "aria-pressed") == "true"
    fullest = numbers(page)[0]
    assert opened.loader.plan.tokens[fullest] == opened.loader.plan.tokens.max()
    page.keyboard.press("j")
    assert page.get_attribute('.pack-row[aria-selected="true"]', "data-number") == str(numbers(page)[1])


def test_a_few_free_tokens_can_be_seen(browser: Any, tmp_path: Path) -> None:
    free = [0, 1, 2, 10, 11, 100, 1000]
    lengths = LengthTable.of(tokens=np.array([4096 - own for own in free] + [4090] * 5))
    opened = of_table(browser, tmp_path / "r.html", lengths, pack_size=4096)
    page = opened.page
    page.click("#tab-packs")
    rows = page.eval_on_selector_all(
        ".pack-row",
        """all => all.map(row => [row.querySelector(".says").textContent, row.querySelector(".fill").textContent,
                                  row.querySelector(".measure i").getBoundingClientRect().width])""",
    )
    width = {says: pixels for says, _, pixels in rows}
    assert width["full"] == 0
    lines = [width[f"{own:,} free"] for own in free[1:]]
    assert all(more - less > 3 for less, more in zip([0, *lines], lines, strict=False) if less != width["10 free"])
    assert {fill for says, fill, _ in rows if says != "full"}.isdisjoint({"100%", "100.00%"})
    page.close()


LOOKS = """([selector, named]) => [...document.querySelectorAll(selector)].map(own => {
  const {backgroundColor, backgroundImage} = getComputedStyle(own);
  const name = named ? own.closest(named) : own;
  return [name.dataset.source ?? (name.title.split(":")[0] || name.textContent), backgroundColor + backgroundImage];
})"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_source_looks_the_same_everywhere_and_like_no_other(browser: Any, opened: Opened, scheme: str) -> None:
    own = open_page(browser, opened.loader, opened.path, color_scheme=scheme)
    page, sources = own.page, opened.loader.lengths.sources

    def looks(selector: str, named: str = "") -> set[tuple[str, str]]:
        return {(name, look) for name, look in page.evaluate(LOOKS, [selector, named])}

    page.click("#tab-ledger")
    table = looks("#ledger-sources .chip", "td")
    assert {name for name, _ in table} == set(sources)
    assert len({look for _, look in table}) == len(sources)
    assert len(looks(".group .chip", ".group")) >= 3
    assert looks(".group .chip", ".group") <= table
    page.click("#tab-samples")
    assert looks("#sample-sources .chip", "li") == table
    assert looks(".sample-row .chip", ".where") <= table
    assert looks("#sample .head .chip", ".source-name") <= table
    page.click("#tab-packs")
    page.select_option("#sort", "vision")
    assert looks("#pack-sources .chip", "li") == table
    assert len(looks(".pack-row .part")) > 2
    assert looks(".pack-row .part") <= table
    assert looks("#pack td .chip", "td") <= table
    assert own.complaints == []
    page.close()


CSS = (Path(report.__file__).parent / "page" / "page.css").read_text(encoding="utf-8")
SEEN = {
    "all colours": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152, 1.053, -0.205), (0.115, 0.786, 0.099), (-0.004, -0.048, 1.052)),
    "no green": ((0.367, 0.861, -0.228), (0.280, 0.673, 0.047), (-0.012, 0.043, 0.969)),
    "no blue": ((1.256, -0.077, -0.179), (-0.078, 0.931, 0.148), (0.005, 0.691, 0.304)),
}
"""What is seen of linear red, green and blue by whom (Machado, Oliveira and Fernandes, 2009, severity 1)."""


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def oklab(light: np.ndarray) -> np.ndarray:
    """A space in which distances are as large as they look (Ottosson, 2020)."""
    cones = ((0.4122, 0.5363, 0.0514), (0.2119, 0.6807, 0.1074), (0.0883, 0.2817, 0.6300))
    axes = ((0.2105, 0.7936, -0.0041), (1.9780, -2.4286, 0.4506), (0.0259, 0.7828, -0.8087))
    return np.array(axes) @ np.cbrt(np.array(cones) @ np.clip(light, 0, 1))


@pytest.mark.parametrize("theme", [":root {", ":root.dark {"])
def test_the_colours_of_sources_stay_apart_for_whoever_looks(theme: str) -> None:
    block = CSS.split(theme, 1)[1].split("}", 1)[0]
    colours = re.findall(r"--source-\d: (#\w{6})", block)
    assert len(colours) == 6
    (panel,) = re.findall(r"--panel: (#\w{6})", block)
    brightness = np.array([0.2126, 0.7152, 0.0722])
    for colour in colours:
        low, high = sorted([brightness @ linear(colour), brightness @ linear(panel)])
        assert (high + 0.05) / (low + 0.05) >= 3, "WCAG 2.2, 1.4.11: what is drawn has a contrast of 3 to its ground"
    for matrix in SEEN.values():
        seen = [oklab(np.array(matrix) @ linear(colour)) for colour in colours]
        assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 0.12


def test_more_sources_than_looks_are_grey_and_said_to_be(browser: Any, tmp_path: Path) -> None:
    names = tuple(f"source-{number}" for number in range(21))
    places = np.arange(21, dtype=np.int32)
    lengths = LengthTable.of(tokens=np.full(21, 50), source=places, sources=names)
    page = of_table(browser, tmp_path / "r.html", lengths, pack_size=100).page
    page.click("#tab-packs")
    looks = [look for _, look in page.evaluate(LOOKS, ["#pack-sources .chip", "li"])]
    assert len(set(looks)) == len(looks) == 19
    assert page.locator("#pack-sources li").all_inner_texts()[-1] == "3 more sources"
    page.click("#tab-ledger")
    rows = [look for _, look in page.evaluate(LOOKS, ["#ledger-sources .chip", "td"])]
    assert rows == [*looks[:18], *looks[18:] * 3]
    page.close()


SCROLLS_SIDEWAYS = """() => [...document.querySelectorAll("body *")].filter(own => {
  const box = own.getBoundingClientRect();
  return box.width && box.right > innerWidth + 1 && !own.closest(".scroll");
}).map(own => own.outerHTML.slice(0, 90))"""
SMALL = """() => [...document.querySelectorAll("button, select, summary, input, [role=option]")].filter(own => {
  const box = own.getBoundingClientRect();
  return box.width && !own.matches(".strip .document") && (box.height < 44 || box.width < 44);
}).map(own => own.outerHTML.slice(0, 90))"""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("width", [320, 390, 699])
def test_one_column_where_it_is_narrow(opened: Opened, part: str, width: int) -> None:
    page = go(opened, part, width=width, height=844)
    if part == "ledger":
        page.click(".group summary >> nth=0")
        page.wait_for_selector(".place")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(SCROLLS_SIDEWAYS) == []
    assert page.evaluate(SMALL) == []
    if part in ("samples", "packs"):
        tops = "all => all.map(own => [own.getBoundingClientRect().left, own.getBoundingClientRect().top])"
        (left, top), (right, below) = page.eval_on_selector_all(f"#{part} > *", tops)
        assert left == right
        assert top < below
    assert opened.complaints == []


@pytest.mark.parametrize(("width", "last"), [(390, "dropped"), (600, "reasons")])
def test_what_was_dropped_is_in_sight_where_it_is_narrow(opened: Opened, width: int, last: str) -> None:
    page = go(opened, "ledger", width=width, height=844)
    heads = page.eval_on_selector_all(
        "#ledger-sources th", "all => all.map(own => [own.textContent, own.getBoundingClientRect().right])"
    )
    assert dict(heads)[last] <= width
    named = page.eval_on_selector_all(
        "#ledger-sources td:first-child", "all => all.map(own => own.getBoundingClientRect().width)"
    )
    assert min(named) >= 60


@pytest.mark.parametrize("part", PARTS)
def test_two_columns_from_700_on(opened: Opened, part: str) -> None:
    page = go(opened, part, width=700)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    if part in ("samples", "packs"):
        lefts = page.eval_on_selector_all(f"#{part} > *", "all => all.map(own => own.getBoundingClientRect().left)")
        assert lefts[0] < lefts[1]


def test_on_a_narrow_screen_what_is_tapped_comes_into_sight(opened: Opened) -> None:
    page = go(opened, "samples", width=390, height=844)
    assert page.evaluate("scrollY") == 0
    page.click(".sample-row >> nth=3")
    assert abs(page.evaluate("document.getElementById('sample').getBoundingClientRect().top")) < 2
    page.click("#sample .back")
    assert page.evaluate("document.getElementById('sample-list').getBoundingClientRect().top") > 0
    page.click("#tab-plan")
    letters = page.evaluate("document.querySelector('.chart text').getBoundingClientRect().height")
    assert letters >= 10, "letters of charts do not shrink with the page"


UNNAMED = """() => [
  ...document.querySelectorAll("button, select, input, summary, [role]:not([role=status])")
].filter(own =>
  !(own.getAttribute("aria-label") ?? "").trim() && !own.getAttribute("aria-labelledby") &&
  !(own.labels?.length) && !own.textContent.trim() && !own.hidden
).map(own => own.outerHTML.slice(0, 90))"""


def test_every_control_has_a_name(opened: Opened) -> None:
    for part in PARTS:
        page = go(opened, part)
        assert page.evaluate(UNNAMED) == []
    assert page.get_by_role("searchbox", name="Search what was found").count() == 1
    page.click("#tab-packs")
    assert page.get_by_role("combobox", name="Sort by").count() == 1
    assert page.get_by_role("button", name="Reverse the order").count() == 1
    label = page.get_attribute(".pack-row >> nth=0", "aria-label")
    assert label.startswith(f"pack {numbers(page)[0]}, ")
    assert "% full" in label


# A card says something in words or draws something that takes up room, besides its heading.
EMPTY_CARDS = """part => [...document.querySelectorAll(`#${part} .card`)].filter(card => {
  const body = card.cloneNode(true);
  body.querySelectorAll("h2, svg").forEach(own => own.remove());
  const marks = [...card.querySelectorAll("svg rect, svg polyline")].map(own => own.getBoundingClientRect());
  const drawn = marks.some(box => box.width > 0 && box.width + box.height > 3);
  return card.querySelector("svg") ? !drawn : !body.textContent.trim();
}).map(card => card.textContent)"""
HOLES = """part => {
  const cards = [...document.querySelectorAll(`#${part} .card`)];
  const right = Math.max(...cards.map(own => own.getBoundingClientRect().right));
  const rows = Map.groupBy(cards, own => own.getBoundingClientRect().top);
  return [...rows.values()].filter(row => row.at(-1).getBoundingClientRect().right < right - 1).length;
}"""
TABLES = {
    "no sample": [],
    "none fits": [900, 901],
    "one pack": [60],
    "all alike and full": [100] * 8,
    "many": [30, 40, 70, 100, 9, 8, 77] * 30,
}


@pytest.mark.parametrize("tokens", TABLES.values(), ids=TABLES.keys())
def test_no_card_is_empty(browser: Any, tmp_path: Path, tokens: list[int]) -> None:
    lengths = LengthTable.of(tokens=np.array(tokens, dtype=np.int64))
    opened = of_table(browser, tmp_path / "r.html", lengths, pack_size=100, world_size=2)
    page = opened.page
    for part, cards in (("plan", 4), ("ledger", 2)):
        page.click(f"#tab-{part}")
        for width in (390, 1000, 1400, 1900):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.locator(f"#{part} .card").count() == cards
            assert page.evaluate(EMPTY_CARDS, part) == []
            assert page.evaluate(HOLES, part) == 0
    page.click("#tab-plan")
    said = page.inner_text("#plan")
    assert ("There is no pack" in said) == (not tokens or min(tokens) > 100)
    assert ("straggler, vision" in said) is False, "no vision work, no figure of it"
    assert opened.complaints == []
    page.close()


def test_ten_thousand_packs_can_be_used(browser: Any, tmp_path: Path) -> None:
    dice = np.random.default_rng(0)
    lengths = LengthTable.of(
        tokens=dice.integers(10, 1000, 90_000),
        source=dice.integers(0, 12, 90_000).astype(np.int32),
        sources=tuple(f"source-{number}" for number in range(12)),
    )
    opened = of_table(browser, tmp_path / "r.html", lengths, pack_size=2048, world_size=8)
    page = opened.page
    assert int(page.get_attribute("html", "data-ready")) < 2000
    page.click("#tab-packs")
    assert page.inner_text("#pack-count").startswith("10,000 of ")
    for order in ("fill", "attention", "source", "number"):
        seconds = page.evaluate(
            """order => {
              const started = performance.now();
              const sort = document.getElementById("sort");
              sort.value = order;
              sort.dispatchEvent(new Event("input", { bubbles: true }));
              document.getElementById("pack").getBoundingClientRect();
              return (performance.now() - started) / 1000;
            }""",
            order,
        )
        assert seconds < 0.5
        assert len(numbers(page)) < 60, "only rows that can be seen exist"
    assert opened.complaints == []
    page.close()
