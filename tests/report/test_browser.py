"""The report in a real browser. Where none is installed these are skipped; `.ci/run` installs one."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from lading import Loader, toy
from lading.fields import IGNORE_INDEX
from lading.packing.pack import document_positions
from lading.records import Encoded, Finding
from tests.report.opened import IN_A_BROWSER, Opened, open_page, write
from tests.support.shared import ROOT

pytestmark = IN_A_BROWSER
KEPT = ROOT / "build" / "screenshots"


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hundred samples of all kinds, a picture that is missing, a broken line, and texts that are no good."""
    folder = tmp_path_factory.mktemp("corpus")
    meta = toy.write_corpus(folder, samples=197, faults=True)
    evil = "</script><script>alert('taken')</script><img src=x onerror=alert('taken')>"
    row = {"conversations": [{"from": "human", "value": evil}, {"from": "gpt", "value": "A platypus."}]}
    with (folder / "talks.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")
    return meta


@pytest.fixture(scope="module")
def opened(browser: Any, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Opened:
    loader = Loader(corpus, "toy:qwen2_5_vl", pack_size=512, world_size=4, rank=0)
    key = loader.samples.corpus.key(5)
    found = Finding(kind="odd_ratio", severity="warning", where=key.where, detail="three times as wide", key=key)
    path = write(loader, tmp_path_factory.mktemp("page") / "report.html", findings=(found,))
    return open_page(browser, loader, path)


@pytest.fixture
def page(opened: Opened) -> Any:
    """The page as it was opened."""
    opened.page.goto("about:blank")
    opened.page.goto(opened.path.as_uri())
    opened.page.wait_for_selector("html[data-ready]")
    return opened.page


def show(page: Any, index: int) -> None:
    page.fill("#search", f"#{index}")
    page.click(f'.sample-row[data-index="{index}"]')


def count(page: Any) -> int:
    return int(page.inner_text("#count").split(" of ")[0].replace(",", ""))


def test_it_opens_at_once_without_a_complaint_and_asks_nobody(page: Any, opened: Opened) -> None:
    assert int(page.get_attribute("html", "data-ready")) < 2000
    for name in ("packs", "plan", "ledger", "samples"):
        page.click(f"#tab-{name}")
        assert page.is_visible(f"#{name}")
    for _ in range(40):
        page.keyboard.press("j")
    assert opened.complaints == []
    asked = {url for url in opened.requests if not url.startswith(("data:", "about:"))}
    assert asked == {opened.path.as_uri()}
    assert page.title() == "lading report"
    assert opened.path.stat().st_size < 15_000_000


@pytest.mark.parametrize("source", ["shapes", "albums", "clips", "talks"])
def test_coloured_tokens_are_the_loaders_labels(page: Any, opened: Opened, source: str) -> None:
    samples = opened.loader.samples
    index = next(index for index in range(len(samples)) if samples.corpus.key(index).source == source)
    encoded = samples.encode(index)
    assert isinstance(encoded, Encoded)
    show(page, index)
    tokens = page.eval_on_selector_all(
        ".token", "all => all.map(own => [Number(own.dataset.id), own.textContent, own.className])"
    )
    ids, labels = encoded.tensors["input_ids"], encoded.tensors["labels"]
    wanted = labels[labels != IGNORE_INDEX].tolist()
    trained = [(token, text) for token, text, classes in tokens if "trained" in classes.split()]
    assert [token for token, _ in trained] == wanted
    tokenizer = samples.facts.processor.tokenizer
    assert "".join(text for _, text in trained) == tokenizer.decode(wanted)
    runs = [stop - start for span in encoded.document.media for start, stop in span.runs]
    assert len(tokens) == len(ids) - sum(runs) + len(runs)
    collapsed = [text for _, text, classes in tokens if "run" in classes.split()]
    assert [text.split(" ×")[1] for text in collapsed] == [f"{run:,}" for run in runs]


def test_positions_are_told_on_hover(page: Any, opened: Opened) -> None:
    samples = opened.loader.samples
    index = next(index for index in range(len(samples)) if samples.corpus.key(index).source == "albums")
    encoded = samples.encode(index)
    assert isinstance(encoded, Encoded)
    _, *three = document_positions(encoded.document, samples.facts.three_way).tolist()
    show(page, index)
    start, stop = encoded.document.media[1].runs[0]
    page.hover(".token.run >> nth=1")
    ranges = [(row[start], row[stop - 1]) for row in three]
    said = "  ".join(
        f"{name} {first}" if first == last else f"{name} {first}–{last}"
        for name, (first, last) in zip("thw", ranges, strict=True)
    )
    assert said in page.inner_text("#tip")
    assert page.get_attribute("figure.lit", "data-medium") == "1"
    page.hover(".token.trained >> nth=-1")
    last = int(np.flatnonzero(encoded.tensors["labels"].numpy() != IGNORE_INDEX)[-1])
    tip = page.inner_text("#tip")
    assert "  ".join(f"{name} {row[last]}" for name, row in zip("thw", three, strict=True)) in tip
    assert f"{last}\n" in tip
    assert "trained on" in tip


def test_filters(page: Any, opened: Opened) -> None:
    lengths = opened.loader.lengths
    assert count(page) == 200
    page.select_option("#by-finding", "=missing_media")
    assert count(page) == 1
    assert "no-such-picture.png" in page.inner_text("#sample .finding.error")
    page.select_option("#by-finding", "=odd_ratio")
    assert "three times as wide" in page.inner_text("#sample .finding.warning")
    page.select_option("#by-finding", "*")
    assert count(page) == 3
    page.select_option("#by-finding", "")
    clips = lengths.sources.index("clips")
    page.select_option("#by-source", label="clips")
    assert count(page) == int((lengths.source == clips).sum())
    page.select_option("#by-source", "")
    page.fill("#least", "100")
    page.fill("#most", "150")
    assert count(page) == int(((lengths.tokens >= 100) & (lengths.tokens <= 150)).sum())
    page.fill("#least", "")
    page.fill("#most", "")
    page.fill("#search", "PLATYPUS")
    assert count(page) == 1
    assert "</script><script>alert('taken')" in page.inner_text("#sample .turn.user .body")
    page.fill("#search", "nothing says this")
    assert count(page) == 0
    assert page.inner_text("#sample") == "No sample is like that."


def test_keys(page: Any) -> None:
    def selected() -> int:
        return int(page.get_attribute('.sample-row[aria-selected="true"]', "data-index"))

    assert selected() == 0
    for key, index in (("j", 1), ("ArrowDown", 2), ("j", 3), ("k", 2), ("ArrowUp", 1)):
        page.keyboard.press(key)
        assert selected() == index
    assert "shapes #1" in page.inner_text("#sample .head")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute(".token.at", "data-place") == "1"
    assert "position" in page.inner_text("#tip")
    page.keyboard.press("/")
    page.keyboard.type("platypus")
    assert count(page) == 1
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    assert page.is_visible("#help")
    page.keyboard.press("Escape")
    assert not page.is_visible("#help")
    page.keyboard.press("2")
    assert page.is_visible("#packs")
    page.keyboard.press("j")
    assert page.get_attribute('.pack-row[aria-selected="true"]', "data-number") is not None


def test_from_a_pack_to_its_samples_and_back(page: Any, opened: Opened) -> None:
    plan = opened.loader.plan
    page.click("#tab-packs")
    number = int(plan.order[0, 0])
    assert page.inner_text("#pack .name") == f"pack {number}"
    assert len(page.query_selector_all("#pack .strip.large .document")) == len(plan.pack(number))
    assert len(page.query_selector_all(".sight polygon")) == len(plan.pack(number))
    first = int(plan.pack(number)[0])
    page.click("#pack .strip.large .document >> nth=0")
    assert f"#{first}" in page.inner_text("#sample .head")
    page.click("#sample .link")
    assert page.inner_text("#pack .name") == f"pack {number}"


def test_the_ledger_leads_to_what_was_left_out(page: Any, opened: Opened) -> None:
    page.click("#tab-ledger")
    rows = page.eval_on_selector_all(
        "#ledger-sources tr", "all => all.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    totals = opened.loader.ledger.totals()
    assert [row[0] for row in rows[1:]] == [*totals, "all"]
    assert [int(row[1]) for row in rows[1:-1]] == [own["input"] for own in totals.values()]
    page.click("#ledger .group[data-kind=missing_media] summary")
    page.click("#ledger button:has-text('show 1 among')")
    assert page.is_visible("#samples")
    assert count(page) == 1


def test_light_and_dark(browser: Any, opened: Opened) -> None:
    dark = open_page(browser, opened.loader, opened.path, color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    by_system = dark.page.evaluate(paper)
    dark.page.keyboard.press("t")
    assert dark.page.evaluate(paper) != by_system
    dark.page.keyboard.press("t")
    assert dark.page.evaluate(paper) == by_system
    KEPT.mkdir(parents=True, exist_ok=True)
    dark.page.screenshot(path=KEPT / "report-dark.png")
    dark.page.close()
    light = open_page(browser, opened.loader, opened.path, color_scheme="light")
    light.page.screenshot(path=KEPT / "report.png")
    light.page.close()
    assert (KEPT / "report.png").stat().st_size > 20_000
    assert (KEPT / "report.png").read_bytes() != (KEPT / "report-dark.png").read_bytes()
    assert dark.complaints == light.complaints == []


def test_a_sound_can_be_played(browser: Any, tmp_path: Path) -> None:
    tone = 0.3 * np.sin(np.arange(48_000) / 16_000 * 2 * np.pi * 440)
    soundfile.write(tmp_path / "tone.wav", tone, 16_000)
    talk = [{"from": "human", "value": "<audio>What is it?"}, {"from": "gpt", "value": "An A."}]
    path = tmp_path / "sounds.jsonl"
    path.write_text(json.dumps({"conversations": talk, "audios": ["tone.wav"]}) + "\n", encoding="utf-8")
    loader = Loader(path, "toy:qwen3_omni", pack_size=1024)
    opened = open_page(browser, loader, write(loader, tmp_path / "r.html"))
    opened.page.wait_for_function("document.querySelector('audio').readyState >= 1")
    assert opened.page.evaluate("document.querySelector('audio').duration") == pytest.approx(3.0, abs=0.2)
    assert opened.complaints == []
    opened.page.close()


@pytest.mark.slow
def test_two_thousand_samples_can_be_used(browser: Any, tmp_path: Path) -> None:
    toy.write_corpus(tmp_path, samples=200)
    rows = [line for name in ("shapes", "albums", "talks") for line in (tmp_path / f"{name}.jsonl").open()]
    many = tmp_path / "many.jsonl"
    with many.open("w", encoding="utf-8") as file:
        for number in range(2000):
            row = json.loads(rows[number % len(rows)])
            row["conversations"][-1]["value"] += f" This is number {number}. " + "And so it goes on. " * (number % 30)
            file.write(json.dumps(row) + "\n")
    (tmp_path / "meta.json").write_text(json.dumps({"many": {"file_name": "many.jsonl", "media_dir": "media"}}))
    loader = Loader(tmp_path / "meta.json", "toy:qwen2_5_vl", pack_size=4096)
    opened = open_page(browser, loader, write(loader, tmp_path / "r.html", limit=2000))
    page = opened.page
    assert int(page.get_attribute("html", "data-ready")) < 2000
    assert count(page) == 2000
    assert len(page.query_selector_all(".sample-row")) < 60, "only rows that can be seen exist"
    seconds = page.evaluate(
        """() => {
          const started = performance.now();
          const search = document.getElementById("search");
          search.value = "number 1234.";
          search.dispatchEvent(new Event("input", { bubbles: true }));
          document.getElementById("sample").getBoundingClientRect();
          return (performance.now() - started) / 1000;
        }"""
    )
    assert seconds < 0.5
    assert count(page) == 1
    assert "number 1234." in page.inner_text("#sample")
    page.fill("#search", "")
    started = page.evaluate("performance.now()")
    for _ in range(20):
        page.keyboard.press("j")
    assert page.evaluate("performance.now()") - started < 4000
    assert opened.complaints == []
    page.close()
